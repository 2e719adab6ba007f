"""Clean a notebook: the filter that git runs, from standard input to standard output.

The result is what nbdev_clean leaves in a file; its own option --stdin fails in nbdev 2.4.14.
"""

import json, sys
from execnb.nbio import dict2nb, nb2str
from nbdev.clean import clean_nb
from nbdev.config import get_config

nb = dict2nb(json.load(sys.stdin))
config = get_config()
clean_nb(
    nb,
    allowed_metadata_keys=config.allowed_metadata_keys.split(),
    allowed_cell_metadata_keys=config.allowed_cell_metadata_keys.split(),
)
sys.stdout.write(nb2str(nb))
