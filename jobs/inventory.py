"""Take stock of an archive: ``python -m jobs.inventory jobs/recipes/inventory.toml --set sources=... --set out=...``.

Lists the sources, opens every document that is new or changed, and writes the manifest that ``jobs.parse`` works from:
one row per page. Prints counts by kind and reason. ``jobs.parse`` runs it by itself; alone it tells, before any decoder
is paid for, how many pages there are and which files do not open.
"""

from __future__ import annotations

from functools import partial

from jobs._main import main
from jobs.parse import connect
from jocr.config import ParseRecipe
from pipelines.inventory import describe, run_inventory
from pipelines.parse import on_ray


def run(recipe: ParseRecipe) -> int:
    """List, connect to Ray, take stock."""
    on = on_ray(recipe, partial(connect, recipe.ray))
    print(describe(run_inventory(recipe, run=on.run)))
    return 0


if __name__ == "__main__":
    main(ParseRecipe, run, __doc__)
