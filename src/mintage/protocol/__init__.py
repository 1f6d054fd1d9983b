"""The wire between stores, clients and the service: URLs, records, requests and answers. Pure: no sockets."""
