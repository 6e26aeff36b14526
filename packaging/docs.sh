#!/bin/sh
# Build the documentation site into build/site; a dead link or a page outside the navigation is an error.
set -eu
cd "$(dirname "$0")/.."
home=.cache/docs
if [ ! "$home/ready" -nt docs/requirements.lock ]; then
    rm -rf "$home"
    .venv/bin/python -m venv "$home"
    "$home/bin/python" -m pip install -q -q --disable-pip-version-check -r docs/requirements.lock
    touch "$home/ready"
fi
NO_MKDOCS_2_WARNING=1 "$home/bin/python" -m mkdocs build --quiet --strict --site-dir build/site
echo "docs: build/site/index.html"
