"""receipts

Revision ID: 0002
Revises: 0001
Create Date: 2026-11-24 06:30:11.204381

"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

import mintage.ext.sqlalchemy
from mintage import typeid

# revision identifiers, used by Alembic.
revision: str = "0002"
down_revision: str | Sequence[str] | None = "0001"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Upgrade schema, and give the orders that are there a receipt."""
    op.add_column("orders", sa.Column("receipt", mintage.ext.sqlalchemy.TypeIDType("receipt"), nullable=True))
    orders = sa.table(
        "orders",
        sa.column("id", mintage.ext.sqlalchemy.SnoType()),
        sa.column("receipt", mintage.ext.sqlalchemy.TypeIDType("receipt")),
    )
    if not op.get_context().as_sql:
        connection, receipts = op.get_bind(), typeid.Generator("receipt")
        for (key,) in connection.execute(sa.select(orders.c.id)).all():
            connection.execute(orders.update().where(orders.c.id == key).values(receipt=receipts.new()))
    op.create_index(op.f("ix_orders_receipt"), "orders", ["receipt"], unique=True)


def downgrade() -> None:
    """Downgrade schema."""
    op.drop_index(op.f("ix_orders_receipt"), table_name="orders")
    op.drop_column("orders", "receipt")
