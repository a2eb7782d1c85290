#!/usr/bin/env bash
# The legs of the matrix that CI runs beside the README's command. Parts of the tests: those whose outcome
# hangs on Python's or pytest's version; the plugin beside others; and the documentation. Interpreters that
# pyenv keeps are made visible.
set -euo pipefail
cd "$(dirname "$0")/.."

if command -v pyenv >/dev/null; then
  PYENV_VERSION=$(pyenv versions --bare | paste -sd:)
  export PYENV_VERSION
fi
.nox/runner/bin/nox --error-on-missing-interpreters \
  -s 'smoke(3.10-pytest-8.0)' 'smoke(3.13-pytest-9)' 'extras(bare)' companions docs
