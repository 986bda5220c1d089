#!/usr/bin/env bash
# Measure config/coder-gpu.yaml, then config/full-size.yaml, on a machine with an NVIDIA GPU that is
# lent for minutes: bare but for its CUDA toolkit, without a network, and with a limit on each
# command.
#
# Where there is a network, with the version of Python that the machine has:
#   PYTHON=python3.12 tests/benchmarks/gpu_campaign.sh pack PACK
# makes the folder PACK, of less than 60 MiB: the workflow, Python packages, llama.cpp, CMake. It
# downloads llama.cpp unless SOURCE names a folder with the source of the pinned commit. `list` in
# place of `pack PACK` prints the workflow's files and the packages.
#
# On the machine, again and again until it says that nothing is left:
#   OUT=FOLDER PACK/tests/benchmarks/gpu_campaign.sh step WORK [LIMIT_S [MARGIN_S]] [--trained] [--try]
# continues in the folder WORK from what is there, and ends before LIMIT_S (540). No block starts in
# the last MARGIN_S seconds (two fifths of the limit); give more than a block takes. What was
# measured so far is OUT/<campaign>.tar.gz (OUT: WORK). The models take 72 GB in WORK, which may be
# in /dev/shm; those of the first campaign are deleted before those of the second are written.
# The coder models are random weights in their shapes, unless --trained says that they are in the
# hub's cache (HF_HOME). --try measures small shapes on the CPU instead.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
largest_pack=$((60 * 1024)) # KiB
largest_result=$((16 * 1024 * 1024))

# Packages of requirements.txt that only tests, lint, figures and intervals import.
not_packed='ast-serialize|axe-playwright-python|black|contourpy|coverage|cycler|execnet|fonttools'
not_packed+='|hf-xet|hypothesis|iniconfig|kiwisolver|librt|matplotlib|mypy|pandas-stubs|pathspec'
not_packed+='|pillow|playwright|pluggy|pyparsing|pytest|pytest-xdist|pytokens|ruff|scipy|seaborn'
not_packed+='|shfmt-py|snakefmt|sortedcontainers|types-psutil|uv'
# Parts of packages that nothing here loads: cloud storage, solvers, headers, tests, manuals.
unused=('tests' '*_flight*' '*arrow_s3*' '*_s3fs*' 'pyarrow/include' 'pyarrow/src' '*.px[id]'
    '*.pyx' 'pulp/solverdir' 'cmake/data/doc' 'cmake/data/bin/c[tp]*' '*/cmake-[0-9]*/Help')
# Parts of llama.cpp that its build for CUDA or the CPU does not read.
not_built=(./models ./docs ./media ./tests ./benches ./skills ./ci ./gguf-py ./conversion
    './convert*' './tools/ui/[!Csu]*' './tools/ui/s[crtv]*' './tools/server/[btw]*e*'
    './ggml/src/ggml-[!bc]*/*' './ggml/src/ggml-[bc]l*/*' './ggml/src/ggml-cann/*'
    './examples/llama.*' './examples/model-conversion')

fail() {
    echo "gpu_campaign: $*" >&2
    exit 1
}

usage() {
    sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2
    exit 2
}

python_version() {
    "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])'
}

packed_files() { # ends each with a null
    git -C "$root" ls-files -z --cached --others --exclude-standard |
        grep -zvE '^(resources/(campaigns|images|drafts)/|tests/([^b]|browser|blocks)|\.)'
}

packed_requirements() {
    awk -v no="^($not_packed)==" '/^[a-z]/ {keep = $0 !~ no} keep' "$root/requirements.txt"
}

pack() {
    local pack=$1 python=${PYTHON:-python3} scratch kib
    [[ ! -e $pack ]] || fail "$pack exists; name a new folder"
    for tool in "$python" git tar xz; do
        command -v "$tool" >/dev/null || fail "no $tool, which packing needs"
    done
    scratch=$(mktemp -d)
    # shellcheck disable=SC2064 # the folder's name is known now
    trap "rm -rf '$scratch'" EXIT
    mkdir -p "$pack/packed"
    pack=$(cd "$pack" && pwd)
    (cd "$root" && packed_files | tar -c --null -T -) | tar -x -C "$pack"
    echo "packing llama.cpp"
    pack_source "$pack/packed/llama.cpp.tar.xz" "$scratch"
    echo "packing Python packages"
    packed_requirements >"$scratch/requirements.txt"
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
        --use-pep517 --no-compile --target "$scratch/site" -r "$scratch/requirements.txt"
    # The other programs name the interpreter of this machine.
    mv "$scratch/site/bin/ninja" "$scratch/site/cmake/data/bin/"
    rm -r "$scratch/site/bin"
    (cd "$scratch/site" && tar -c "${unused[@]/#/--exclude=}" .) |
        xz -T0 --x86 --lzma2=preset=6,dict=64MiB >"$pack/packed/site.tar.xz"
    python_version "$python" >"$pack/packed/python"
    kib=$(du -sk --apparent-size "$pack" | cut -f1)
    echo "$pack: $((kib / 1024)) MiB, for Python $(<"$pack/packed/python") on $(uname -m)"
    ((kib < largest_pack)) || fail "the pack is larger than $((largest_pack / 1024)) MiB"
}

pack_source() { # ARCHIVE SCRATCH
    local source=${SOURCE:-}
    if [[ -z $source ]]; then
        source=$(cd "$root/workflow/scripts" && "$root/.venv/bin/python" - "$root" "$2" <<'PYTHON'
import os, pathlib, sys, yaml
from specmoe.config.engines import PypiEngine
from specmoe.engine.build import fetch

root, scratch = map(pathlib.Path, sys.argv[1:])
engines = yaml.safe_load((root / "config/engines.yaml").read_text())["engines"]
print(fetch(PypiEngine(**engines["current"]), scratch, pathlib.Path(os.devnull)))
PYTHON
        ) || fail "llama.cpp could not be fetched; name a folder with its source in SOURCE"
    fi
    [[ -f $source/ggml/CMakeLists.txt ]] || fail "SOURCE: $source has no source of llama.cpp"
    tar -C "$source" -c "${not_built[@]/#/--exclude=}" . | xz -T0 -6 >"$1"
}

require() { # BACKEND
    local missing=() tool wanted
    wanted=$(<"$root/packed/python")
    for tool in timeout tar c++ python3; do
        command -v "$tool" >/dev/null || missing+=("$tool")
    done
    if [[ $1 == cuda ]]; then
        for tool in nvcc nvidia-smi; do
            command -v "$tool" >/dev/null || missing+=("$tool")
        done
    fi
    python=$(command -v "python$wanted" || command -v python3 || true)
    if [[ -n $python && $(python_version "$python") != "$wanted" ]]; then
        missing+=("Python $wanted, for which this pack was made")
    fi
    ((${#missing[@]} == 0)) || fail "missing here: $(printf '%s; ' "${missing[@]}" | sed 's/; $//')"
}

prepare() { # Python with the packages
    site=$(echo "$work"/venv/lib/python*/site-packages)
    if [[ ! -f $work/venv/complete ]]; then
        rm -rf "$work/venv"
        "$python" -m venv --without-pip "$work/venv"
        site=$(echo "$work"/venv/lib/python*/site-packages)
        unpack "$root/packed/site.tar.xz" "$site"
        touch "$work/venv/complete"
    fi
    export PATH="$work/venv/bin:$site/cmake/data/bin:$PATH"
}

choose() { # CAMPAIGN: what it measures, and llama.cpp's source where a build looks for it
    case $1 in
    coder)
        overlays=("$root/config/coder-gpu.yaml")
        [[ -n $trained ]] || overlays+=("$here/gpu_campaign_shape.yaml")
        [[ $backend == cuda ]] || overlays+=("$here/gpu_campaign_shape_try.yaml")
        ;;
    full-size)
        overlays=("$root/config/full-size.yaml")
        [[ $backend == cuda ]] || overlays+=("$here/gpu_campaign_try.yaml")
        ;;
    esac
    read -r name engine commit models blocks model_ids < <(
        python "$here/gpu_campaign_facts.py" "${overlays[@]}"
    ) || fail "the configuration could not be read"
    local build=$work/results/engines/$engine/work
    if [[ ! -d $build/source-$commit ]]; then
        rm -rf "$build/unpacked"
        mkdir -p "$build/unpacked"
        unpack "$root/packed/llama.cpp.tar.xz" "$build/unpacked"
        mv "$build/unpacked" "$build/source-$commit"
    fi
}

unpack() { # ARCHIVE FOLDER; a bare machine may lack xz
    "$python" -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$@"
}

snake() { # SECONDS until no job starts, CORES, TARGETS
    local soft=$(($1 - SECONDS)) hard=$((limit - 20 - SECONDS)) code=0
    ((soft > 0 && hard > 0)) || return 0
    # The outer one interrupts the whole group of processes, the inner one asks snakemake alone.
    timeout --signal=INT --kill-after=10 "$hard" timeout --foreground --signal=TERM "$soft" \
        python -m snakemake "${@:3}" --snakefile "$root/Snakefile" --configfile "${overlays[@]}" \
        --cores "$2" --nolock --rerun-incomplete --keep-going >>"$work/step.log" 2>&1 || code=$?
    case $code in
    0 | 124 | 137) ;; # 124 and 137: it was stopped in time
    *)
        failed=yes
        grep -E 'Error|cannot|failed' "$work/step.log" | tail -5 >&2 || true
        ;;
    esac
}

written_models() {
    local count=0 model
    for model in $model_ids; do
        [[ ! -f $work/results/models/$models/$model.json ]] || count=$((count + 1))
    done
    echo $count
}

say() {
    local measured=0 built=no packed=no
    [[ ! -d $work/results/$name/blocks ]] ||
        measured=$(find "$work/results/$name/blocks" -name '*.jsonl' | wc -l)
    [[ ! -f $work/results/engines/$engine/engine.json ]] || built=yes
    [[ ! -f $work/results/$name/packed/manifest.json ]] || packed=yes
    echo "$name after $SECONDS s: llama.cpp built: $built;" \
        "models: $(written_models) of $(wc -w <<<"$model_ids"); blocks: $measured of $blocks;" \
        "packed: $packed; $1"
}

step() {
    local campaign
    mkdir -p "$work" "${OUT:=$work}"
    cd "$work"
    export XDG_CACHE_HOME=$work/cache
    prepare
    for campaign in coder full-size; do
        choose "$campaign"
        [[ ! -f results/$name/packed/manifest.json ]] || continue
        measure
        [[ -f results/$name/packed/manifest.json ]] || return 0
        [[ $campaign == full-size || -n $trained ]] || rm results/models/"$models"/*.gguf
    done
    echo "nothing is left"
}

measure() { # as much of the campaign as there is time for
    local result=$OUT/$name.tar.gz hardest=$((limit - 20)) writing=
    # Writing models takes a core, and compiling the others.
    if (($(written_models) < $(wc -w <<<"$model_ids"))); then
        # shellcheck disable=SC2046 # one word a model
        snake "$hardest" 4 $(printf "results/models/$models/%s.json " $model_ids) &
        writing=$!
    fi
    [[ -f results/engines/$engine/engine.json ]] || snake "$hardest" "$(nproc)" engine
    [[ -z $writing ]] || wait "$writing"
    if [[ ! -f results/engines/$engine/engine.json ]]; then
        say "next: the rest of the build ($(tail -1 "results/engines/$engine/build.log"))"
        return
    fi
    snake "$((limit - margin))" 1 pack_campaign
    tar -czf "$result" --exclude='*.server*.log' "results/$name" \
        results/engines/*/engine.json results/models/*/*.json step.log
    (($(stat -c %s "$result") <= largest_result)) || echo "$result is larger than 16 MiB" >&2
    if [[ -f results/$name/packed/manifest.json ]]; then
        say "the campaign is $result"
    else
        say "next: another step ($work/step.log)"
    fi
}

command=${1:-}
folder=${2:-}
failed=no
if [[ $# -eq 1 && $command == list ]]; then
    packed_files | tr '\0' '\n'
    packed_requirements | grep -oE '^[a-z][^ ;]+'
    exit
fi
[[ $# -ge 2 ]] || usage
shift 2
case $command in
pack)
    [[ $# -eq 0 ]] || usage
    pack "$folder"
    ;;
step)
    backend=cuda
    trained=
    numbers=()
    for word; do
        if [[ $word == --try ]]; then
            backend=cpu
        elif [[ $word == --trained ]]; then
            trained=yes
        elif [[ $word =~ ^[1-9][0-9]*$ ]]; then
            numbers+=("$word")
        else
            usage
        fi
    done
    limit=${numbers[0]:-540}
    margin=${numbers[1]:-$((limit * 2 / 5))}
    ((limit >= 60)) || fail "a step needs at least 60 s"
    ((margin < limit)) || fail "the margin must be shorter than the limit"
    [[ -f $root/packed/site.tar.xz ]] || fail "$root is no pack; make one with: $0 pack FOLDER"
    work=$(mkdir -p "$folder" && cd "$folder" && pwd)
    [[ ! -d /usr/local/cuda/bin ]] || PATH=$PATH:/usr/local/cuda/bin
    require "$backend"
    step
    [[ $failed == no ]] || fail "the workflow failed; see $work/step.log"
    ;;
*) usage ;;
esac
