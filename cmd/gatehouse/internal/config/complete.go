package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// A key is described once, by the tags of its field: the file is completed and checked by them, the schema offers what
// they name, and the list of settings tells their defaults.
//
//	default  what holds where nothing is written
//	words    the words that it takes, or each item of a list
//	offers   the same, of a key whose room checks its words
//	range    the least and the most of a whole number; 0 is not written, but for a pointer
//	as       time: a length of time such as 30s

// Words are the words that a key may have, none where it takes any text.
func Words(tag reflect.StructTag) []string {
	return strings.Fields(tag.Get("words") + " " + tag.Get("offers"))
}

// complete fills in defaults below v, which stands at path, and notes what is not as the tags have it.
func (b *builder) complete(v reflect.Value, path []any) {
	below := func(step any) []any { return append(slices.Clone(path), step) }
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			b.complete(v.Elem(), path)
		}
	case reflect.Struct:
		for f, value := range v.Fields() {
			if key := keyOf(f); key != "" {
				b.key(f.Tag, value, below(key))
				b.complete(value, below(key))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			b.complete(v.Index(i), below(i))
		}
	case reflect.Map:
		for _, name := range v.MapKeys() {
			one := reflect.New(v.Type().Elem()).Elem()
			one.Set(v.MapIndex(name))
			b.complete(one, below(name.String()))
			v.SetMapIndex(name, one)
		}
	}
}

// key completes and checks one value.
func (b *builder) key(tag reflect.StructTag, v reflect.Value, path []any) {
	fallback := tag.Get("default")
	if fallback != "" && v.IsZero() {
		if err := yaml.Unmarshal([]byte(fallback), v.Addr().Interface()); err != nil {
			b.bad(path, "its default %q cannot be read: %v", fallback, err) // a mistake of ours, which a test finds
		}
	}
	if words := strings.Fields(tag.Get("words")); len(words) > 0 {
		if v.Kind() == reflect.Slice {
			for i := range v.Len() {
				b.among(append(slices.Clone(path), i), v.Index(i).String(), words)
			}
		} else if v.String() != "" {
			b.among(path, v.String(), words)
		}
	}
	if bounds := tag.Get("range"); bounds != "" {
		b.within(path, v, bounds)
	}
	if text := v; tag.Get("as") == "time" && text.String() != "" && b.duration(path, text.String(), 0) == 0 {
		text.SetString(fallback)
	}
}

// within checks a whole number that is written.
func (b *builder) within(path []any, v reflect.Value, bounds string) {
	var least, most int64
	if _, err := fmt.Sscan(bounds, &least, &most); err != nil {
		b.bad(path, "its range %q cannot be read: %v", bounds, err)
	}
	written := !v.IsZero()
	if v.Kind() == reflect.Pointer && written {
		v = v.Elem()
	}
	if written && (v.Int() < least || v.Int() > most) {
		b.bad(path, "%v: %d is out of range. Write %d to %d.", path[len(path)-1], v.Int(), least, most)
	}
}

// span is a length of time that complete has checked; "" is 0.
func span(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0
	}
	return d
}
