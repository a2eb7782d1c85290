CREATE TABLE currencies (
  code TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  aud REAL NOT NULL              -- Australian dollars for one unit
);
CREATE TABLE customers (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  country TEXT NOT NULL,         -- ISO 3166 code
  postcode TEXT NOT NULL,        -- text: Darwin is 0800
  channel TEXT,                  -- how they found us, where we know it
  tier TEXT NOT NULL,            -- basic or gold
  is_test INTEGER NOT NULL
);
CREATE TABLE products (
  sku TEXT PRIMARY KEY,          -- text: four digits
  name TEXT NOT NULL,
  category TEXT NOT NULL,
  price_cents INTEGER NOT NULL,  -- list price, Australian
  discontinued_on TEXT           -- date, NULL while we sell it
);
CREATE TABLE orders (
  id INTEGER PRIMARY KEY,
  customer_id INTEGER NOT NULL REFERENCES customers(id),
  currency TEXT NOT NULL REFERENCES currencies(code),
  status TEXT NOT NULL,          -- placed, shipped, completed or cancelled
  placed_at TEXT NOT NULL        -- UTC
);
CREATE TABLE order_items (
  order_id INTEGER NOT NULL REFERENCES orders(id),
  sku TEXT NOT NULL REFERENCES products(sku),
  quantity INTEGER NOT NULL,
  unit_price_cents INTEGER NOT NULL,
  PRIMARY KEY (order_id, sku)
);
CREATE TABLE refunds (
  id INTEGER PRIMARY KEY,
  order_id INTEGER NOT NULL REFERENCES orders(id),
  amount_cents INTEGER NOT NULL,
  reason TEXT,                   -- NULL where nobody asked
  refunded_at TEXT NOT NULL      -- UTC
);
