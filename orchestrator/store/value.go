package store

import (
	"database/sql"
	"encoding/json"
	"math"
	"strings"
	"time"
)

// micros is a time as stored; the zero time is 0.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// nullMicros is a time that may be missing.
func nullMicros(t *time.Time) sql.NullInt64 {
	if t == nil {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: t.UnixMicro(), Valid: true}
}

func fromMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

func fromNull(us sql.NullInt64) *time.Time {
	if !us.Valid {
		return nil
	}
	t := time.UnixMicro(us.Int64).UTC()
	return &t
}

// usdMicros is money as millionths of a dollar; a sum that is no number is unknown.
func usdMicros(usd *float64) sql.NullInt64 {
	if usd == nil || math.IsNaN(*usd) || math.IsInf(*usd, 0) {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: int64(math.Round(*usd * 1e6)), Valid: true}
}

func fromUSD(m sql.NullInt64) *float64 {
	if !m.Valid {
		return nil
	}
	usd := float64(m.Int64) / 1e6
	return &usd
}

// encode is v as the text of a JSON column.
func encode(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}

// encodeOr is encode for a pointer that may be nil: the column is NULL then.
func encodeOr[T any](v *T) (sql.NullString, error) {
	if v == nil {
		return sql.NullString{}, nil
	}
	text, err := encode(v)
	return sql.NullString{String: text, Valid: true}, err
}

func decodeOr[T any](text sql.NullString) (*T, error) {
	if !text.Valid {
		return nil, nil
	}
	v := new(T)
	return v, json.Unmarshal([]byte(text.String), v)
}

// clean makes hostile text storable: PostgreSQL refuses NULs and broken UTF-8 with
// errors that would fail the whole transaction.
func clean(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// list makes a missing list an empty one: the column reads [] and not null.
func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

// spelt is such a list as events tell it.
func spelt[T ~string](items []T) []string {
	out := make([]string, len(items))
	for i, v := range items {
		out[i] = string(v)
	}
	return out
}
