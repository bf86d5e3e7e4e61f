"""lm-evaluation-harness: `results_*.json` of `--output_path`.

As lm_eval 0.4.13 writes it: `results.TASK."METRIC,FILTER"` is what the metric's aggregation gives over all documents of
a task, and `METRIC_stderr,FILTER` its standard error, or "N/A". A metric's scale is its own and stands nowhere.
"""

from typing import Any

from reproducer.documents.imported import ImportedRun
from reproducer.results.fields import Fields, written
from reproducer.results.making import UNKNOWN_OF_SCORES, Making

READ_IN = "0.4.13"
_KEYS = frozenset({"results", "configs", "versions", "n-shot"})
_TASK_WORDS = frozenset({"name", "alias", "sample_len", "sample_count"})
_CONDITIONS = (
    ("model_source",),
    ("model_name",),
    ("config", "model"),
    ("config", "batch_size"),
    ("config", "limit"),
    ("config", "bootstrap_iters"),
    ("config", "random_seed"),
    ("config", "numpy_seed"),
    ("config", "torch_seed"),
    ("config", "fewshot_seed"),
    ("fewshot_as_multiturn",),
    ("chat_template_sha",),
    ("system_instruction_sha",),
    ("transformers_version",),
    ("git_hash",),
)
_TASK_CONDITIONS = ("output_type", "num_fewshot", "repeats", "dataset_path", "dataset_name", "test_split")


def is_lm_eval(documents: list[dict[str, Any]]) -> bool:
    """Whether this is a file of results of lm-evaluation-harness."""
    return len(documents) == 1 and documents[0].keys() >= _KEYS


def read_lm_eval(fields: Fields, count: int, *, where: str) -> tuple[ImportedRun, ...]:
    """Its runs, one for each task and group; raises InvalidDocumentError for numbers that cannot be."""
    tasks = fields.table("results") if count == 1 else {}
    return tuple(_run(fields, task, where) for task, scores in tasks.items() if isinstance(scores, dict))


def _run(fields: Fields, task: str, where: str) -> ImportedRun:
    run = Making(fields, (), name=written(("results", task)), unknown=UNKNOWN_OF_SCORES, where=where)
    for condition in _CONDITIONS:
        run.condition(*condition)
    for each in _TASK_CONDITIONS:
        run.condition("configs", task, each)
    for each in ("temperature", "max_gen_toks", "do_sample"):
        run.condition("configs", task, "generation_kwargs", each)
    for table in ("versions", "n-shot", "task_hashes"):
        run.condition(table, task)
    for each in ("original", "effective"):
        run.count(
            *("n-samples", task, each),
            name=f"n-samples.{each}",
            unit="requests",
            how=f"documents of the task, {each}",
        )
    for key in fields.table("results", task):
        name, comma, chosen = key.partition(",")
        if not comma or key in _TASK_WORDS:
            continue
        if name.endswith("_stderr"):
            of = name.removesuffix("_stderr")
            how = f"the harness's standard error of {of!r}"
            run.score("results", task, key, name=written((f"{of},{chosen}",)), statistic="standard error", how=how)
        else:
            how = "what the metric's aggregation gives over the task's documents, in the metric's own scale"
            run.score("results", task, key, name=written((key,)), statistic="value", how=how)
    return run.done()
