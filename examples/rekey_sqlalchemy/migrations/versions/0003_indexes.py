"""Build the indexes of the swap while the shop goes on."""

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    with op.get_context().autocommit_block():
        op.create_index("ix_orders_new_id", "orders", ["new_id"], unique=True, postgresql_concurrently=True)
        op.create_index("ix_orders_old_id", "orders", ["id"], unique=True, postgresql_concurrently=True)
        op.create_index("ix_lines_new_order_id", "lines", ["new_order_id"], postgresql_concurrently=True)


def downgrade() -> None:
    op.drop_index("ix_lines_new_order_id")
    op.drop_index("ix_orders_old_id")
    op.drop_index("ix_orders_new_id")
