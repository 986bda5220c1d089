#!/usr/bin/env bash
# Measure a small campaign on a SLURM cluster of two nodes, of which one is lost in the middle.
#
#   tests/benchmarks/slurm_two_nodes.sh BIN SNAKEMAKE FOLDER
# BIN is a folder with llama.cpp's programs, SNAKEMAKE that of an environment with the plugin for SLURM
# (config/README.md, Several machines), FOLDER a new one. As root, on a machine that is no node of a
# cluster, since it writes /etc/slurm/slurm.conf; on Debian: apt-get install slurm-wlm munge.
#
# Both nodes are this machine: each has a machine id, a folder of locks and a core of its own. The
# second one is killed with all that it runs, as a loss of power would, and comes back. Whether
# snakemake goes on by itself or the same command is typed again: every block must be there once, and
# none that was finished before may be measured again. Prints that, and the blocks of each node.
set -euo pipefail
bin=$(realpath "$1") snakemake=$(realpath --no-symlinks "$2") folder=$(realpath --canonicalize-missing "$3")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export PATH=$(dirname "$snakemake"):$PATH
mkdir -p "$folder/cluster/state"

configure() {
    local host node=1
    host=$(hostname)
    mkdir -p /etc/slurm
    cat >/etc/slurm/slurm.conf <<END
ClusterName=specmoe
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SlurmdTimeout=15
MinJobAge=3600
StateSaveLocation=$folder/cluster/state
SlurmdSpoolDir=$folder/cluster/spool.%n
SlurmctldLogFile=$folder/cluster/slurmctld.log
SlurmdLogFile=$folder/cluster/slurmd.%n.log
SlurmctldPidFile=$folder/cluster/slurmctld.pid
SlurmdPidFile=$folder/cluster/slurmd.%n.pid
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
    for node in 1 2; do
        echo "NodeName=n$node NodeHostname=$host NodeAddr=127.0.0.1 Port=1700$node CPUs=1" \
            "RealMemory=8000 State=UNKNOWN" >>/etc/slurm/slurm.conf
    done
}

# With a machine id, locks and a core of its own.
start_node() {
    local identity=$folder/cluster/machine-id.$1
    printf '%032x\n' "$1" >"$identity"
    setsid unshare --mount --propagation private sh -c "
        mount --bind $identity /etc/machine-id && mount -t tmpfs -o mode=1777 locks /run/lock &&
        exec taskset --cpu-list $(($1 - 1)) slurmd -D -N n$1" >>"$folder/cluster/n$1.out" 2>&1 &
    node[$1]=$!
    disown # bash would print that it was killed
}

# Kill a node and all that it runs: what is in its mount namespace.
lose_node() {
    local own process
    own=$(readlink "/proc/${node[$1]}/ns/mnt")
    for process in /proc/[0-9]*; do
        if [[ $(readlink "$process/ns/mnt" 2>/dev/null) == "$own" ]]; then
            kill -KILL "${process#/proc/}" 2>/dev/null || true
        fi
    done
}

end_cluster() {
    local daemon
    for number in 1 2; do lose_node $number || true; done
    for daemon in slurmctld munged; do pkill -x $daemon || true; done
}

campaign() {
    cat >"$folder/campaign.yaml" <<END
campaign: {name: cluster, engine: built, models: synthetic, backend: cpu, machines: same, suites: [lost]}
engines: {built: {source: path, path: $bin}}
suites:
  lost: {title: A node is lost, targets: [random-8m-f16, random-15m-f16], drafts: [random-unrelated-8m-f16],
         gammas: [4, 8], prompts: [code, 64]}
measurement: {n_predict: 64, repeats: 4, threads: 1, reruns: null}
machine: {memory_bandwidth_gb_s: 20}
END
    command=("$snakemake" --snakefile "$root/Snakefile" --directory "$folder"
        --configfile "$folder/campaign.yaml")
    # Models and engine first, on the machine that submits.
    "${command[@]}" --cores 1 --until build_engine describe_model -- advise \
        >"$folder/prepare.log" 2>&1
    command+=(--workflow-profile "$root/profiles/slurm" --jobs 2 --latency-wait 10
        --slurm-status-command squeue --slurm-init-seconds-before-status-checks 3
        --seconds-between-status-checks 3 -- advise)
}

blocks() { find "$folder/results/cluster/blocks" -name 'r*.jsonl' 2>/dev/null | sort; }

trap end_cluster EXIT
declare -a node command
configure
mkdir -p /run/munge && chown munge: /run/munge
runuser -u munge munged || true
slurmctld
start_node 1
start_node 2
for _ in $(seq 60); do
    [[ $(sinfo -N -h -o %t | grep -cE 'idle|mix|alloc') == 2 ]] && break
    sleep 0.5
done
campaign

began=$SECONDS
"${command[@]}" >"$folder/first.log" 2>&1 &
first=$!
while (($(blocks | wc -l) < 2)) && kill -0 $first; do sleep 0.5; done
sleep 3 # the next ones measure
lose_node 2
sleep 40
start_node 2
wait $first && echo "the first call went on by itself" || echo "the first call ended with $?"
sums() { blocks | xargs sha256sum; }
sums >"$folder/kept.txt"
for again in 1 2 3; do
    "${command[@]}" >"$folder/again$again.log" 2>&1 && break
    scontrol update NodeName=n2 State=resume 2>/dev/null || true
done
sums >"$folder/end.txt"
echo "$((SECONDS - began)) s; the same command was typed again $again times"
echo "blocks after the first call: $(wc -l <"$folder/kept.txt"), in the end: $(wc -l <"$folder/end.txt")"
echo "changed since: $(comm -23 "$folder/kept.txt" "$folder/end.txt" | wc -l)"
"$(dirname "$snakemake")/python" - "$folder/results/cluster/runs.parquet" <<'END'
import sys

import pandas as pd

runs = pd.read_parquet(sys.argv[1])
assert runs["run"].is_unique, "a run is there twice"
print(f"{len(runs)} runs, each once; blocks by machine:")
print(runs.drop_duplicates("block")["machine"].value_counts().to_string())
END
