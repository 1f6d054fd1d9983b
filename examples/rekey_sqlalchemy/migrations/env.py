"""Connect Alembic to the database, and compare it with the models of the release that RELEASE names."""

import os

from alembic import context
from shop import Base
from sqlalchemy import create_engine

from mintage.ext.sqlalchemy import include_name, render_item

engine = create_engine(os.environ["DATABASE_URL"])
with engine.connect() as connection:
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        render_item=render_item,
        include_name=include_name,
        transaction_per_migration=True,  # the indexes are built outside of any
    )
    with context.begin_transaction():
        context.run_migrations()
engine.dispose()
