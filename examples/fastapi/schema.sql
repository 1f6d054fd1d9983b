CREATE TABLE IF NOT EXISTS customers (
    id bigint PRIMARY KEY,
    name text NOT NULL
);
CREATE TABLE IF NOT EXISTS orders (
    -- The bytes of a sno order as its text and its time do.
    id bytea PRIMARY KEY CHECK (octet_length(id) = 10),
    receipt uuid NOT NULL UNIQUE,
    customer bigint NOT NULL REFERENCES customers,
    item text NOT NULL,
    count integer NOT NULL
);
CREATE INDEX IF NOT EXISTS orders_of_customer ON orders (customer, id);
