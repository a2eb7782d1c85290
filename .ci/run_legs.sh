#!/usr/bin/env bash
# The legs of the matrix that CI runs beside the README's command. Parts of the tests: those whose outcome
# hangs on Python's or pytest's version; the plugin beside others; the page of a report in a browser; the
# documentation. Interpreters that pyenv keeps are made visible.
set -euo pipefail
cd "$(dirname "$0")/.."

if command -v pyenv >/dev/null; then
  PYENV_VERSION=$(pyenv versions --bare | paste -sd:)
  export PYENV_VERSION
fi
install_chromium() { # from Debian's packages, as root or with sudo
  command -v chromium >/dev/null && command -v chromedriver >/dev/null && return
  local as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
  if ! command -v apt-get >/dev/null || ! "${as_root[@]}" true; then
    echo "the browser tests need chromium and chromedriver: install both, or run this as root on Debian" >&2
    return 1
  fi
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium chromium-driver
}

install_chromium
.nox/runner/bin/nox --error-on-missing-interpreters \
  -s 'smoke(3.10-pytest-8.0)' 'smoke(3.13-pytest-9)' 'extras(bare)' companions browser docs
