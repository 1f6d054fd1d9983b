#!/bin/sh
# Gives the old orders their IDs. Stop it whenever you like, and start it again.
set -eu
mintage backfill "$DATABASE_URL" --table orders --time-column made --id-column id --scheme ulid --store "$MINTAGE_STORE"
mintage backfill "$DATABASE_URL" --table orders --time-column made --id-column invoice --sequence invoices
mintage verify "$DATABASE_URL" --table orders --column id --scheme ulid --order-by number --sorted
