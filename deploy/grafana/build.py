"""Writes the dashboards as JSON: ``python -m deploy.grafana.build``. With ``--check`` it only says what is stale."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from deploy.grafana import operation, replays, violations
from deploy.grafana.panels import Board, build

BOARDS: Final[dict[str, Board]] = {
    "violacoes.json": violations.BOARD,
    "operacao.json": operation.BOARD,
    "replays.json": replays.BOARD,
}
FOLDER: Final = Path(__file__).resolve().parent / "dashboards"


def files() -> dict[Path, str]:
    """Every file and what it must hold."""
    return {
        FOLDER / name: json.dumps(build(board), cls=JSONEncoder, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        for name, board in BOARDS.items()
    }


def main() -> int:
    """Write the files, or say which of them are not as they should be (exit code 1)."""
    stale = [path for path, text in files().items() if not path.exists() or path.read_text("utf-8") != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path}: stale; run python -m deploy.grafana.build")
        return 1 if stale else 0
    FOLDER.mkdir(exist_ok=True)
    for path, text in files().items():
        path.write_text(text, "utf-8")
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
