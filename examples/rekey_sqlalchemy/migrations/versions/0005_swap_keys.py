"""Make the new key the primary key. Stop the shop first: both tables are locked, in one transaction."""

from alembic import op

revision = "0005"
down_revision = "0004"

FILL = """
UPDATE lines SET new_order_id = orders.new_id FROM orders
WHERE orders.id = lines.order_id AND lines.new_order_id IS DISTINCT FROM orders.new_id
"""
# Without a column: of several unique indexes, the key must depend on that of the primary key.
REFER = "ALTER TABLE lines ADD CONSTRAINT lines_order_id_fkey FOREIGN KEY (order_id) REFERENCES orders"
FORWARD = [
    "LOCK TABLE orders, lines",
    # Lines that came, or went to another order, since the lines were filled.
    FILL,
    # The foreign key and the index of the old column go with it.
    "ALTER TABLE lines DROP COLUMN order_id",
    "ALTER TABLE lines RENAME COLUMN new_order_id TO order_id",
    "ALTER INDEX ix_lines_new_order_id RENAME TO ix_lines_order_id",
    "ALTER TABLE orders DROP CONSTRAINT orders_pkey",
    "ALTER TABLE orders RENAME COLUMN id TO old_id",
    "ALTER TABLE orders RENAME COLUMN new_id TO id",
    "ALTER TABLE orders ALTER COLUMN old_id DROP NOT NULL",
    # Fails if an order has no new key, and nothing has changed then.
    "ALTER TABLE orders ADD CONSTRAINT orders_pkey PRIMARY KEY USING INDEX ix_orders_new_id",
    "ALTER TABLE lines ALTER COLUMN order_id SET NOT NULL",
    REFER,
]
BACKWARD = [
    "LOCK TABLE orders, lines",
    # Orders that came after the swap have no UUID.
    "UPDATE orders SET old_id = gen_random_uuid() WHERE old_id IS NULL",
    "ALTER TABLE lines DROP CONSTRAINT lines_order_id_fkey",
    "ALTER TABLE lines RENAME COLUMN order_id TO new_order_id",
    "ALTER INDEX ix_lines_order_id RENAME TO ix_lines_new_order_id",
    "ALTER TABLE lines ALTER COLUMN new_order_id DROP NOT NULL",
    "ALTER TABLE lines ADD COLUMN order_id uuid",
    "UPDATE lines SET order_id = orders.old_id FROM orders WHERE orders.id = new_order_id",
    "ALTER TABLE orders DROP CONSTRAINT orders_pkey",
    "ALTER TABLE orders RENAME COLUMN id TO new_id",
    "ALTER TABLE orders RENAME COLUMN old_id TO id",
    "ALTER TABLE orders ALTER COLUMN new_id DROP NOT NULL",
    "ALTER TABLE orders ADD CONSTRAINT orders_pkey PRIMARY KEY (id)",
    "CREATE UNIQUE INDEX ix_orders_new_id ON orders (new_id)",
    "CREATE INDEX ix_lines_order_id ON lines (order_id)",
    "ALTER TABLE lines ALTER COLUMN order_id SET NOT NULL",
    REFER,
]


def upgrade() -> None:
    for statement in FORWARD:
        op.execute(statement)


def downgrade() -> None:
    for statement in BACKWARD:
        op.execute(statement)
