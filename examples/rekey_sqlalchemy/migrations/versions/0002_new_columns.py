"""Add the columns of the new key, which are NULL in all rows."""

import sqlalchemy as sa
from alembic import op

from mintage.ext.sqlalchemy import ULIDType

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("orders", sa.Column("new_id", ULIDType(), nullable=True))
    op.add_column("lines", sa.Column("new_order_id", ULIDType(), nullable=True))


def downgrade() -> None:
    op.drop_column("lines", "new_order_id")
    op.drop_column("orders", "new_id")
