"""Rebuild the example data set ``src/sievesvm/data/liver_plasma.npz``.

Usage::

    pip download --no-deps --only-binary :all: alphastats==0.7.2
    python tools/make_example.py alphastats-0.7.2-py3-none-any.whl

Source
    Package ``alphastats`` 0.7.2 (AlphaPeptStats, Mann Labs, PyPI), files
    ``alphastats/gui/example_data/proteinGroups.txt`` (MaxQuant protein table, label-free
    quantification) and ``metadata.xlsx`` (one row per sample), the data set PXD011839.

Licence
    Apache License 2.0, "Copyright 2020 MannLabs" (``LICENSE.txt`` of the package). The
    article is published under CC BY 4.0.

Original publication
    Niu L, Geyer PE, Wewer Albrechtsen NJ, et al. Plasma proteome profiling discovers novel
    proteins associated with non-alcoholic fatty liver disease. Molecular Systems Biology
    15(3), e8793 (2019), doi:10.15252/msb.20188793

What is done
    1. Protein groups flagged as decoy (Reverse), Potential contaminant or Only identified by
       site are dropped. So are rows without any number (overflow lines of the source table,
       which hold identifiers only).
    2. Protein groups with a positive intensity in fewer than ``MIN_SAMPLES`` of the 48 samples
       are dropped. The labels play no part in this.
    3. Intensities are put on the log2 scale. A protein that was not detected in a sample (0 in
       the source) gets the smallest log2 intensity of the whole remaining table.
    4. Values are rounded to multiples of 1/1024, which are exact in float32.
    5. The name of a column is the first gene name of the protein group, else its first
       protein identifier. Gene names that occur more than once get the first protein
       identifier appended.
    6. The label is +1 for the three groups with liver disease and -1 for the two without. Of
       the metadata only the group is kept, no clinical value and no sample identifier.

Only NumPy is needed. The same NumPy and zlib versions give the same bytes; the arrays are the
same with any version.
"""

import argparse
import csv
import hashlib
import io
import sys
import zipfile
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

FOLDER = "alphastats/gui/example_data/"
SHA256 = {
    "proteinGroups.txt": "ccaff9886e1294b685a6a7bd4c139e280ba6ec3fb74374c2ac39b6f085b5851a",
    "metadata.xlsx": "2ca065185590f27c15cf99b37ebf4e7a3f44696627e0b058cd3f255b0c01487b",
}
MIN_SAMPLES = 3
PREFIX = "LFQ intensity "
FLAGS = ("Only identified by site", "Reverse", "Potential contaminant")
GROUPS = {  # as written in the metadata: (short name, label)
    "healthy": ("healthy", -1),
    "type 2 diabetes mellitus": ("T2D", -1),
    "non-alcoholic fatty liver disease": ("NAFLD", 1),
    "type 2 diabetes mellitus|non-alcoholic fatty liver disease": ("NAFLD+T2D", 1),
    "liver cirrhosis": ("cirrhosis", 1),
}
OUT = Path(__file__).resolve().parents[1] / "src" / "sievesvm" / "data" / "liver_plasma.npz"


def read_member(archive, name):
    """Bytes of one source file, checked against its SHA-256."""
    data = archive.read(FOLDER + name)
    digest = hashlib.sha256(data).hexdigest()
    if digest != SHA256[name]:
        sys.exit(f"{name}: unexpected content (SHA-256 {digest}); is this alphastats 0.7.2?")
    return data


def read_sheet(data):
    """First sheet of an .xlsx file as a list of {column letters: text} rows."""
    ns = {"m": "http://schemas.openxmlformats.org/spreadsheetml/2006/main"}
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        strings = ElementTree.fromstring(book.read("xl/sharedStrings.xml"))
        sheet = ElementTree.fromstring(book.read("xl/worksheets/sheet1.xml"))
    shared = ["".join(t.text or "" for t in s.iterfind(".//m:t", ns)) for s in strings]
    rows = []
    for row in sheet.iterfind(".//m:row", ns):
        cells = {}
        for cell in row.iterfind("m:c", ns):
            value = cell.find("m:v", ns)
            if value is not None:
                text = shared[int(value.text)] if cell.get("t") == "s" else value.text
                cells[cell.get("r").rstrip("0123456789")] = text.strip()
        rows.append(cells)
    return rows


def read_groups(data):
    """Mapping from sample identifier to group as written in the metadata."""
    rows = read_sheet(data)
    column = {title: letters for letters, title in rows[0].items()}
    sample, disease = column["sample"], column["disease"]
    return {row[sample]: row[disease] for row in rows[1:] if sample in row}


def read_proteins(data):
    """Sample identifiers, names and intensities (samples x proteins) of the kept proteins."""
    csv.field_size_limit(10**8)
    table = csv.DictReader(io.StringIO(data.decode("utf-8"), newline=""), delimiter="\t")
    columns = [c for c in table.fieldnames if c.startswith(PREFIX)]
    proteins, genes, values = [], [], []
    for row in table:
        numbers = [float(row[c] or 0) for c in columns]
        flagged = any((row[f] or "").strip() for f in FLAGS)
        if flagged or sum(v > 0 for v in numbers) < MIN_SAMPLES:
            continue
        proteins.append(row["Protein IDs"].split(";")[0].strip())
        genes.append(row["Gene names"].split(";")[0].strip())
        values.append(numbers)
    times = Counter(genes)
    names = []
    for gene, protein in zip(genes, proteins, strict=True):
        unique = gene and times[gene] == 1
        names.append(gene if unique else f"{gene}_{protein}" if gene else protein)
    return [c[len(PREFIX) :] for c in columns], names, np.array(values).T


def main():
    parser = argparse.ArgumentParser(description="Rebuild the example data set.")
    parser.add_argument("archive", help="path to alphastats-0.7.2-py3-none-any.whl")
    parser.add_argument("-o", "--out", default=OUT, help="file to write (default: %(default)s)")
    args = parser.parse_args()

    with zipfile.ZipFile(args.archive) as archive:
        groups = read_groups(read_member(archive, "metadata.xlsx"))
        samples, names, intensity = read_proteins(read_member(archive, "proteinGroups.txt"))

    detected = intensity > 0
    log2 = np.log2(intensity, where=detected, out=np.full(intensity.shape, np.inf))
    log2[~detected] = log2.min()
    X = np.asfortranarray(np.round(log2 * 1024) / 1024, dtype=np.float32)
    group = np.array([GROUPS[groups[s]][0] for s in samples])
    y = np.array([GROUPS[groups[s]][1] for s in samples], dtype=np.int8)
    names = np.array(names)
    if len(np.unique(names)) != len(names) or not np.isfinite(X).all():
        sys.exit("names not unique or values not finite")

    np.savez_compressed(args.out, X=X, y=y, names=names, group=group)
    print(
        f"{args.out}: {X.shape[0]} samples, {X.shape[1]} proteins, {int((y > 0).sum())} with "
        f"label +1, {(~detected).mean():.0%} of the values not detected"
    )


if __name__ == "__main__":
    main()
