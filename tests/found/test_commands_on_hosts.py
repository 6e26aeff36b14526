"""What users typed and what became of it on a host."""

from pathlib import Path

from tests.acceptance.personal import Cluster


def results(cluster: Cluster, directory: Path, *words: str) -> tuple[int, str]:
    """(exit code of ``bsub -K``, what the job wrote before its report)."""
    output = directory / "out.txt"
    done = cluster.run("bsub", "-K", "-oo", str(output), "-cwd", str(directory), *words)
    return done.returncode, output.read_text().partition("\n--------")[0]


def test_words_reach_the_program(cluster: Cluster, tmp_path: Path) -> None:
    """commands-by-clients 1: exit 7 was 0, awk and python3 ended with a shell's syntax error, one file was two."""
    (tmp_path / "f").write_text("one two\n")
    assert results(cluster, tmp_path, "bash", "-c", "exit 7")[0] == 7
    assert results(cluster, tmp_path, "awk", "{print $2}", "f") == (0, "two\n")
    assert results(cluster, tmp_path, "python3", "-c", "print(1); print('a')") == (0, "1\na\n")
    assert results(cluster, tmp_path, "sh", "-c", 'echo a  b; echo "it\'s" $0', "me") == (0, "a b\nit's me\n")
    assert results(cluster, tmp_path, "touch", "two words")[0] == 0
    assert (tmp_path / "two words").exists()
    assert results(cluster, tmp_path, "echo a; echo b") == (0, "a\nb\n")
    assert results(cluster, tmp_path, "echo", "$LSB_JOBINDEX", ">", "into") == (0, "")
    assert (tmp_path / "into").read_text() == "0\n"


def test_an_unknown_default_queue_is_told(cluster: Cluster) -> None:
    """everyday 4: LSB_DEFAULTQUEUE=nosuch went to the default queue without a word."""
    there = cluster.with_environment(LSB_DEFAULTQUEUE="nosuch")
    done = there.run("bsub", "true")
    assert (done.returncode, done.stderr) == (255, "nosuch: No such queue. Job not submitted.\n")


def test_a_job_knows_its_directory_and_its_users_defaults(cluster: Cluster, tmp_path: Path) -> None:
    """commands-by-clients 4: LS_EXECCWD was unset; LSB_DEFAULTPROJECT must reach a bsub within the job, too."""
    there = cluster.with_environment(LSB_DEFAULTPROJECT="envproj")
    assert results(there, tmp_path, "echo $LS_EXECCWD $LSB_DEFAULTPROJECT") == (0, f"{tmp_path} envproj\n")
