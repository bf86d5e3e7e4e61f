"""Forms of what must stay on a machine, each as the text that gives it away and the part of it that must not survive.

The bodies are drawn by tests; no token of anybody stands here.
"""

from collections.abc import Callable
from dataclasses import dataclass

LOWER = "abcdefghijklmnopqrstuvwxyz"
UPPER = LOWER.upper()
DIGITS = "0123456789"
HEX = DIGITS + "abcdef"
ALNUM = LOWER + UPPER + DIGITS
BASE64 = ALNUM + "+/"


@dataclass(frozen=True)
class Planted:
    """One form.

    Attributes:
        name: of the form.
        alphabet: what its secret part is drawn from.
        length: of the secret part.
        text: the form around a secret part.
    """

    name: str
    alphabet: str
    length: int
    text: Callable[[str], str]


def _form(name: str, alphabet: str, length: int, text: str) -> Planted:
    before, _, after = text.partition("@@")
    return Planted(name, alphabet, length, lambda body: before + body + after)


TOKENS = (
    _form("hugging face", ALNUM, 34, "hf_@@"),
    _form("hugging face organisation", ALNUM, 34, "api_org_@@"),
    _form("github", ALNUM, 36, "ghp_@@"),
    _form("github oauth", ALNUM, 36, "gho_@@"),
    _form("github app", ALNUM, 36, "ghs_@@"),
    _form("github refresh", ALNUM, 36, "ghr_@@"),
    _form("github fine-grained", ALNUM + "_", 82, "github_pat_11@@"),
    _form("gitlab", ALNUM, 20, "glpat-@@"),
    _form("gitlab runner", ALNUM, 20, "glrt-@@"),
    _form("npm", ALNUM, 36, "npm_@@"),
    _form("pypi", ALNUM + "-_", 100, "pypi-AgEIcHlwaS5vcmc@@"),
    _form("docker hub", ALNUM, 27, "dckr_pat_@@"),
    _form("openai", ALNUM, 48, "sk-@@"),
    _form("openai project", ALNUM, 60, "sk-proj-@@"),
    _form("anthropic", ALNUM, 90, "sk-ant-api03-@@"),
    _form("stripe", ALNUM, 24, "sk_live_@@"),
    _form("slack bot", DIGITS + LOWER, 40, "xoxb-1@@"),
    _form("slack user", DIGITS + LOWER, 40, "xoxp-1@@"),
    _form("slack app", DIGITS + LOWER, 40, "xapp-1-@@"),
    _form("slack hook", UPPER + DIGITS, 30, "https://hooks.slack.com/services/T0/B0/@@"),
    _form("discord hook", ALNUM, 60, "https://discord.com/api/webhooks/123456789/@@"),
    _form("telegram", ALNUM, 33, "123456789:AA@@"),
    _form("aws key id", UPPER + DIGITS, 16, "AKIA@@"),
    _form("aws temporary key id", UPPER + DIGITS, 16, "ASIA@@"),
    _form("google api", ALNUM + "_-", 35, "AIza@@"),
    _form("google oauth", ALNUM + "_-", 60, "ya29.@@"),
    _form("google client", ALNUM, 28, "GOCSPX-@@"),
    _form("groq", ALNUM, 52, "gsk_@@"),
    _form("xai", ALNUM, 60, "xai-@@"),
    _form("replicate", ALNUM, 37, "r8_@@"),
    _form("nvidia", ALNUM, 64, "nvapi-@@"),
    _form("databricks", HEX, 32, "dapi@@"),
    _form("digitalocean", HEX, 64, "dop_v1_@@"),
    _form("vault", ALNUM, 24, "hvs.@@"),
    _form("grafana", ALNUM, 40, "glsa_@@"),
    _form("sendgrid", ALNUM, 43, "SG.abcdefghijklmnop123456.@@"),
    _form("linear", ALNUM, 40, "lin_api_@@"),
    _form("age", UPPER + DIGITS, 58, "AGE-SECRET-KEY-1@@"),
    _form("json web token", ALNUM + "_-", 40, "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.@@"),
    _form("weights and biases, new", ALNUM, 60, "wandb_v1_@@"),
)
IN_CONTEXT = (
    _form("bearer", ALNUM, 40, "Authorization: Bearer @@"),
    _form("basic", BASE64, 40, "Authorization: Basic @@=="),
    _form("bearer in a sentence", ALNUM, 40, "sent Bearer @@"),
    _form("basic auth in a URL", ALNUM, 14, "https://somebody:@@@hub.example.org/simple"),
    _form("token in a URL", ALNUM, 30, "https://@@@github.com/a/b.git"),
    _form("password", ALNUM, 12, "password=@@"),
    _form("password of digits", DIGITS, 9, "PASSWORD=@@"),
    _form("passphrase", ALNUM, 12, "passphrase: @@"),
    _form("database password", ALNUM, 12, "DB_PASSWORD=@@"),
    _form("api key", ALNUM, 20, "api_key=@@"),
    _form("api key, yaml", ALNUM, 20, "apiKey: @@"),
    _form("header of an api key", ALNUM, 20, "x-api-key: @@"),
    _form("argument of an api key", ALNUM, 20, "--api-key @@"),
    _form("argument of a password", ALNUM, 20, "--ssl-keyfile-password=@@"),
    _form("secret access key", BASE64, 40, "AWS_SECRET_ACCESS_KEY=@@"),
    _form("session token", BASE64, 60, "aws_session_token=@@"),
    _form("hub token", ALNUM, 30, "HF_TOKEN=@@"),
    _form("token", ALNUM.replace("e", ""), 30, "token=x@@"),
    _form("weights and biases", HEX, 40, "WANDB_API_KEY=@@"),
    _form("weights and biases, login", HEX, 40, "wandb login @@"),
    _form("netrc", HEX, 40, "machine api.wandb.ai login user password @@"),
    _form("docker auth", BASE64, 24, "auth: @@="),
    _form("npm auth", ALNUM, 36, "//registry.npmjs.org/:_authToken=@@"),
    _form("client secret", ALNUM, 30, "client_secret=@@"),
    _form("cookie", ALNUM, 30, "Cookie: session=@@"),
    _form("amazon signature", HEX, 64, "https://b.s3.amazonaws.com/k?X-Amz-Signature=@@"),
    _form("azure signature", ALNUM, 43, "https://a.blob.core.windows.net/c?sv=2024&sig=@@"),
    _form("key in a query", ALNUM, 30, "https://maps.example.org/x?key=@@"),
    _form("curl user", ALNUM, 14, "curl -u somebody:@@"),
    _form("ssh key", BASE64, 68, "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA@@"),
)
MACHINES = (
    _form("ipv4", DIGITS[1:], 2, "10.77.211.@@"),
    _form("ipv4 and port", DIGITS[1:], 2, "172.16.77.@@:40123"),
    _form("public ipv4", DIGITS[1:], 2, "203.0.113.@@"),
    _form("ipv6", HEX, 4, "2001:db8:85a3::8a2e:370:@@"),
    _form("ipv6 in brackets", HEX, 4, "[2001:db8:85a3::8a2e:370:@@]:8000"),
    _form("link local", HEX, 4, "fe80::1ff:fe23:4567:@@%eth0"),
    _form("hardware address", HEX, 2, "52:54:00:12:ab:@@"),
    _form("amazon host", DIGITS[1:], 2, "ip-10-77-211-@@.ec2.internal"),
    _form("inner host", LOWER, 8, "z@@.cluster.local"),
    _form("host of a URL", LOWER, 8, "http://zz@@:30000/v1"),
    _form("host", LOWER, 8, "hostname=zz@@"),
    _form("host of a server", LOWER, 8, "host='zz@@'"),
    _form("user", LOWER, 8, "USER=zz@@"),
    _form("prompt of a shell", LOWER, 8, "zz@@@node:~$ "),
    _form("linux home", LOWER, 8, "/home/zz@@/models"),
    _form("other linux home", LOWER, 8, "/mnt/lustre/home/zz@@/models"),
    _form("mac home", LOWER, 8, "/Users/zz@@/models"),
    _form("windows home", LOWER, 8, "C:\\Users\\zz@@\\models"),
    _form("windows home, slashes", LOWER, 8, "C:/Users/zz@@/models"),
    _form("windows home, in WSL", LOWER, 8, "/mnt/c/Users/zz@@/models"),
    _form("encoded home", LOWER, 8, "%2Fhome%2Fzz@@%2Fmodels"),
    _form("escaped home", LOWER, 8, "\\/home\\/zz@@\\/models"),
    _form("tilde", LOWER, 8, "~zz@@/models"),
    _form("e-mail", LOWER, 8, "zz@@@example.org"),
    _form("e-mail, encoded", LOWER, 8, "zz@@%40example.org"),
    _form("client", DIGITS[1:], 5, '127.0.0.1:@@ - "GET /health HTTP/1.1"'),
)
IDENTIFIERS = (
    _form("sglang", HEX, 32, "Req Time Stats(rid=@@, input len=7)"),
    _form("sglang, quoted", HEX, 32, "rid='@@'"),
    _form("vllm", HEX, 32, "Received request chatcmpl-@@: params"),
    _form("vllm, completion", HEX, 32, "Added request cmpl-@@-0."),
    _form("aborted", HEX, 32, "Aborted request(s) @@."),
    _form("request id", ALNUM, 12, "request_id=@@"),
    _form("header", ALNUM, 12, "x-request-id: @@"),
    _form("response", HEX, 32, "resp_@@"),
)
EVERYTHING = TOKENS + IN_CONTEXT + MACHINES + IDENTIFIERS

ARMOUR = tuple(
    (f"-----BEGIN {kind}-----", f"-----END {kind}-----")
    for kind in (
        "PRIVATE KEY",
        "RSA PRIVATE KEY",
        "EC PRIVATE KEY",
        "ENCRYPTED PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "PGP PRIVATE KEY BLOCK",
    )
)

EVIDENCE = (
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "commit e83c5163316f89bfbde7d9ab23ca2e25604af290",
    "revision=e83c5163316f89bfbde7d9ab23ca2e25604af290",
    "sglang 0.5.10.post1",
    "torch==2.13.0+cpu",
    "nvidia-cublas-cu12==12.8.4.1",
    "nvidia-curand-cu12 10.3.9.90",
    "nvidia_cudnn_cu12-9.10.2.21-py3-none-manylinux_2_27_x86_64.whl",
    "partial_json_parser-0.2.1.1.post7-py3-none-any.whl",
    "cuDNN 9.10.2.21, NCCL version 2.27.3",
    "Linux 5.15.90.1",
    "Driver Version: 580.65.06",
    "Qwen/Qwen3-Coder-30B-A3B-Instruct",
    "model='meta-llama/Llama-3.1-8B-Instruct'",
    "HuggingFaceTB/SmolLM2-135M-Instruct@12fd25f77366fa6b3b4b768ec3050bf629380bac",
    "deepseek-ai/DeepSeek-V3.1",
    "Decode batch, #running-req: 1, #token: 168, token usage: 0.00, cuda graph: True, gen throughput (token/s): 467.29",
    "Prefill batch, #new-seq: 1, #new-token: 6, #cached-token: 0, #pending-token: 0, input throughput (token/s): 3.45",
    "queue_duration=6.00ms, forward_duration=6333.42ms, start_time=2588.987",
    "max_total_tokens=70000, max_new_tokens=128, num_tokens: 12, prompt_tokens=7, completion_tokens=8",
    "eos_token='</s>', bos_token=<s>, pad_token: '<|endoftext|>', eos_token_id=2",
    "tokenizer_path='HuggingFaceTB/SmolLM2-135M-Instruct', tokenizer_mode='auto'",
    "api_key=None, ssl_keyfile_password=None, admin_api_key=None",
    "host='127.0.0.1', port=30000",
    "host='0.0.0.0', port=8000",
    "Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)",
    "http://localhost:30000/v1/models",
    "https://huggingface.co/Qwen/Qwen3-8B/resolve/main/config.json",
    "https://github.com/sgl-project/sglang/commit/e83c5163316f89bfbde7d9ab23ca2e25604af290",
    "git@github.com:sgl-project/sglang.git",
    "docker://lmsysorg/sglang@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "2026-12-03T10:43:05Z",
    "[2026-12-01 02:05:14] ",
    "12/03 10:43:05.123456",
    "00000000:17:00.0",
    "std::vector<int>::size_type, dead::beef, a::b",
    "x[1::2], x[::-1]",
    "Intel(R) Xeon(R) Processor @ 2.90GHz",
    "NVIDIA H200, 143771 MiB, power limit 700 W",
    "1.5e-07, -0.25, 1_000, 0x7fff, 99.9%",
    "lib/python3.12/site-packages/torch/nn/modules/module.py:1773",
    "-----BEGIN PUBLIC KEY-----",
    "key_id: 6fd2a8e2b4d35cbf",
    "cache key: 0001, sort key=lambda",
    "TP0 DP1 PP2 rank=3",
    "smollm2-135m-instruct-sglang-e1da26753a8c",
    "urn:penny-reproducer:qualification:v1",
    "request latency 12 ms, 3 requests in 5 s",
    "response time: 0.5",
    "task-scheduler-with-a-long-name, disk-0123456789abcdef0123",
)
