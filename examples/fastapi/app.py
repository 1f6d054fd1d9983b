"""Orders over HTTP: each worker mints its own IDs, under a lease from the PostgreSQL that the orders are in.

DATABASE_URL=postgresql://… gunicorn --workers 2 --worker-class uvicorn_worker.UvicornWorker app:app
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

import asyncpg
from fastapi import Depends, FastAPI, HTTPException, Query, Request
from pydantic import BaseModel, Field

from mintage import sno, snowflake

DATABASE_URL = os.environ["DATABASE_URL"]
SCHEMA = Path(__file__).with_name("schema.sql")

# Nothing is leased here: gunicorn may load the application before it forks. A worker leases at its own first ID.
orders = sno.Generator(store=DATABASE_URL)
customers = snowflake.Generator(store=DATABASE_URL)

# An int in Python and in the database, text in JSON: JavaScript would round the number.
CustomerID = Annotated[int, snowflake.Str()]


class NewCustomer(BaseModel):
    name: str = Field(min_length=1, max_length=200)


class Customer(NewCustomer):
    id: CustomerID


class NewOrder(BaseModel):
    customer: CustomerID
    item: str = Field(min_length=1, max_length=200)
    count: int = Field(1, ge=1, le=1_000_000)


class Order(NewOrder):
    id: sno.ID


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with asyncpg.create_pool(DATABASE_URL, min_size=2, max_size=8) as app.state.pool:
        async with app.state.pool.acquire() as connection, connection.transaction():
            # Workers start at the same time, and one makes the tables.
            await connection.execute("SELECT pg_advisory_xact_lock(71)")
            await connection.execute(SCHEMA.read_text(encoding="utf-8"))
        # The first ID waits for a lease, so that no request has to.
        await asyncio.gather(asyncio.to_thread(orders.new), asyncio.to_thread(customers.new))
        yield
    # The node numbers are free at once, not at the end of their leases.
    orders.close()
    customers.close()


app = FastAPI(title="Orders", lifespan=lifespan)


def pool(request: Request) -> asyncpg.Pool:
    return request.app.state.pool


Pool = Annotated[asyncpg.Pool, Depends(pool)]


@app.post("/customers", status_code=201)
async def create_customer(new: NewCustomer, pool: Pool) -> Customer:
    customer = Customer(id=customers.new(), name=new.name)
    await pool.execute("INSERT INTO customers (id, name) VALUES ($1, $2)", customer.id, customer.name)
    return customer


@app.post("/orders", status_code=201)
async def create_order(new: NewOrder, pool: Pool) -> Order:
    order = Order(id=orders.new(), **new.model_dump())
    try:
        await pool.execute(
            "INSERT INTO orders (id, customer, item, count) VALUES ($1, $2, $3, $4)",
            bytes(order.id),
            order.customer,
            order.item,
            order.count,
        )
    except asyncpg.ForeignKeyViolationError:
        raise HTTPException(404, f"there is no customer {order.customer}") from None
    return order


@app.get("/orders/{id}")
async def read_order(id: sno.ID, pool: Pool) -> Order:
    row = await pool.fetchrow("SELECT id, customer, item, count FROM orders WHERE id = $1", bytes(id))
    if row is None:
        raise HTTPException(404, f"there is no order {id}")
    return Order.model_validate(dict(row))


@app.get("/orders")
async def list_orders(
    customer: CustomerID, pool: Pool, after: sno.ID = sno.ID.ZERO, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> list[Order]:
    """A customer's orders as they were made, ``limit`` at a time: the last ID is the next ``after``."""
    rows = await pool.fetch(
        "SELECT id, customer, item, count FROM orders WHERE customer = $1 AND id > $2 ORDER BY id LIMIT $3",
        customer,
        bytes(after),
        limit,
    )
    return [Order.model_validate(dict(row)) for row in rows]
