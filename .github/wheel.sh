#!/bin/sh
# Builds the wheel of one CPython for this processor and glibc 2.17 into dist, and copies its SBOM into target/sbom.
set -eu
cd "$(dirname "$0")/.."

# Not maturin's --zig: it links LLVM's unwinder. glibc unwinds a daemon thread by libgcc_s, which crashes on the structures
# of the other when CPython before 3.14 exits.
processor=$(uname -m)
RUSTFLAGS="$(python3 crates/py/backend.py) -C linker=$PWD/.github/zig-cc"
export RUSTFLAGS
python3 -m maturin build --release --locked --strip --compatibility manylinux2014 --target "$processor-unknown-linux-gnu" \
    --interpreter "python$1" --out dist

python3 -m twine check --strict dist/*.whl
python3 -m zipfile --extract dist/*.whl target/wheel
readelf --dynamic target/wheel/mintage/*.so | grep -q 'NEEDED.*libgcc_s.so.1' || {
    echo "The wheel has an unwinder of its own: link libgcc_s.so.1." >&2
    exit 1
}
mkdir -p target/sbom
cp target/wheel/*.dist-info/sboms/*.cyclonedx.json target/sbom
"python$1" -m venv target/installed
target/installed/bin/pip install --no-index dist/*.whl
cd target
installed/bin/python -c 'import mintage; print(mintage.__version__)'
