"""Copy the new key of each order to its lines, while the shop goes on."""

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.execute(
        "UPDATE lines SET new_order_id = orders.new_id FROM orders "
        "WHERE orders.id = lines.order_id AND lines.new_order_id IS DISTINCT FROM orders.new_id"
    )


def downgrade() -> None:
    """Leave the keys: the next upgrade completes them."""
