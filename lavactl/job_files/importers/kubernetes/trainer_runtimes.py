"""ClusterTrainingRuntimes that Kubeflow's Trainer installs itself, as far as they concern a host without its images."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.job_files.text.merging import Plain

STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
NODE, LAUNCHER, TRAINER = "node", "launcher", "trainer"
DATASET, MODEL = "dataset-initializer", "model-initializer"


def _pods(container: "dict[str, Plain]", step: str = "") -> "dict[str, Plain]":
    job: dict[str, Plain] = {"spec": {"template": {"spec": {"containers": [container]}}}}
    return {"metadata": {"labels": {STEP: step}}, **job} if step else job


def _initializer(name: str, source: str = "") -> "dict[str, Plain]":
    container: dict[str, Plain] = {"name": name}
    if source:
        container["env"] = [{"name": "STORAGE_URI", "value": source}]
        container["volumeMounts"] = [{"name": "initializer", "mountPath": "/workspace"}]
    return {"name": name, "template": _pods(container, name)}


def _plain(policy: str) -> "dict[str, Plain]":
    """Runtime of nodes alone, which find each other by their variables."""
    nodes: dict[str, Plain] = {"name": NODE, "template": _pods({"name": NODE}, TRAINER)}
    return {"mlPolicy": {policy: {}}, "template": {"spec": {"replicatedJobs": [nodes]}}}


def _mpi() -> "dict[str, Plain]":
    """Runtime of nodes that run an SSH server, and a launcher that is a node itself."""
    server: dict[str, Plain] = {"name": NODE, "command": ["/usr/sbin/sshd"], "args": ["-De"]}
    jobs: list[Plain] = [
        {"name": NODE, "template": _pods(server)},
        {
            "name": LAUNCHER,
            "dependsOn": [{"name": NODE, "status": "Ready"}],
            "template": _pods({"name": NODE}, TRAINER),
        },
    ]
    success: dict[str, Plain] = {"operator": "All", "targetReplicatedJobs": [LAUNCHER]}
    policy: dict[str, Plain] = {"mpi": {"numProcPerNode": "1", "runLauncherAsNode": "true"}}
    return {"mlPolicy": policy, "template": {"spec": {"successPolicy": success, "replicatedJobs": jobs}}}


def _with_initializers(names: "dict[str, str]", command: "list[Plain]", gpus: int = 0) -> "dict[str, Plain]":
    """Runtime of PyTorch whose nodes start when initializers, by name and source, are done."""
    container: dict[str, Plain] = {"name": NODE}
    if command:
        container |= {"command": command, "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    after: list[Plain] = [{"name": name, "status": "Complete"} for name in names]
    nodes: dict[str, Plain] = {"name": NODE, "dependsOn": after, "template": _pods(container, TRAINER)}
    jobs: list[Plain] = [*(_initializer(name, source) for name, source in names.items()), nodes]
    return {"mlPolicy": {"torch": {}}, "template": {"spec": {"replicatedJobs": jobs}}}


def _torchtune(model: str, config: str, *tokens: str) -> "dict[str, Plain]":
    command: list[Plain] = [
        "tune", "run", "--rdzv_endpoint=localhost:29500", "full_finetune_distributed", "--config", config,
        "dataset=torchtune.datasets.instruct_dataset", "dataset.source=parquet",
        "dataset.data_dir=/workspace/dataset/data", "output_dir=/workspace/output", *tokens,
        "checkpointer.checkpoint_dir=/workspace/model",
    ]  # fmt: skip
    return _with_initializers({DATASET: "hf://tatsu-lab/alpaca", MODEL: model}, command, 2)


_LLAMA_TOKENS = ("tokenizer.path=/workspace/model/original/tokenizer.model",)
_QWEN_TOKENS = ("tokenizer.path=/workspace/model/vocab.json", "tokenizer.merges_file=/workspace/model/merges.txt")
RUNTIMES: "dict[str, dict[str, Plain]]" = {
    "torch-distributed": _plain("torch"),
    "jax-distributed": _plain("jax"),
    "xgboost-distributed": _plain("xgboost"),
    "deepspeed-distributed": _mpi(),
    "mlx-distributed": _mpi(),
    "torch-distributed-with-cache": _with_initializers({DATASET: ""}, []),
    "torchtune-llama3.2-1b": _torchtune("hf://meta-llama/Llama-3.2-1B-Instruct", "llama3_2/1B_full", *_LLAMA_TOKENS),
    "torchtune-llama3.2-3b": _torchtune("hf://meta-llama/Llama-3.2-3B-Instruct", "llama3_2/3B_full", *_LLAMA_TOKENS),
    "torchtune-qwen2.5-1.5b": _torchtune("hf://Qwen/Qwen2.5-1.5B-Instruct", "qwen2_5/1.5B_full", *_QWEN_TOKENS),
}
