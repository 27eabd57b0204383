-- +goose Up
-- PostgreSQL's columns are put into another order; here rows are written whole anyway.

-- +goose Down
