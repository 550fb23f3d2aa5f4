package server

import (
	"net/url"
	"strconv"
	"strings"

	"tranca/internal/api"
	"tranca/internal/server/route"
)

// query is what a query says, checked against what the call takes.
type query struct {
	params []route.Param
	values map[string][]string
}

// parseQuery reads a query. What the call does not know is refused, as is what
// can't be read, and a second value where one is wanted.
func parseQuery(raw string, params []route.Param) (query, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return query{}, api.Errorf(api.CodeInvalid, "the query can't be read: %v", err)
	}
	q := query{params: params, values: values}
	for name, all := range values {
		p := q.find(name)
		if p == nil {
			return q, unknownParam(name, params)
		}
		if len(all) > 1 && !p.Repeat {
			return q, api.Errorf(api.CodeInvalid, "the parameter %s stands there %d times", name, len(all))
		}
		for _, v := range all {
			if err := checkParam(p, v); err != nil {
				return q, err
			}
		}
	}
	for _, p := range params {
		if p.Required && len(values[p.Name]) == 0 {
			return q, api.Errorf(api.CodeInvalid, "the parameter %s is missing", p.Name)
		}
	}
	return q, nil
}

func unknownParam(name string, params []route.Param) error {
	var names []string
	for _, p := range params {
		names = append(names, p.Name)
	}
	switch near := api.Nearest(name, names); {
	case near != "":
		return api.Errorf(api.CodeInvalid, "there is no parameter %.64q; did you mean %q?", name, near)
	case len(names) == 0:
		return api.Errorf(api.CodeInvalid, "there is no parameter %.64q: the call takes none", name)
	}
	return api.Errorf(api.CodeInvalid, "there is no parameter %.64q; there are: %s", name, strings.Join(names, ", "))
}

func checkParam(p *route.Param, v string) error {
	switch p.Kind {
	case route.Number:
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < p.Min || n > p.Max {
			return api.Errorf(api.CodeInvalid, "%s is %.40q: want a whole number from %d to %d", p.Name, v, p.Min, p.Max)
		}
	case route.Flag:
		if v != "true" && v != "false" {
			return api.Errorf(api.CodeInvalid, "%s is %.40q: want true or false", p.Name, v)
		}
	case route.Octal:
		if n, err := strconv.ParseUint(v, 8, 16); err != nil || n > 0o777 {
			return api.Errorf(api.CodeInvalid, "%s is %.40q: want permission bits in octal, at most 0777", p.Name, v)
		}
	case route.Pair:
		if name, _, ok := strings.Cut(v, "="); !ok || name == "" {
			return api.Errorf(api.CodeInvalid, "%s is %.100q: want NAME=VALUE", p.Name, v)
		}
	case route.Text:
		if v == "" || p.MaxBytes > 0 && len(v) > p.MaxBytes {
			return api.Errorf(api.CodeInvalid, "%s has %d bytes: want 1 to %d", p.Name, len(v), p.MaxBytes)
		}
		if strings.IndexByte(v, 0) >= 0 {
			return api.Errorf(api.CodeInvalid, "%s holds a NUL", p.Name)
		}
	}
	return nil
}

func (q query) find(name string) *route.Param {
	for i := range q.params {
		if q.params[i].Name == name {
			return &q.params[i]
		}
	}
	return nil
}

func (q query) has(name string) bool { return len(q.values[name]) > 0 }

// text returns a value, or the default where it is absent.
func (q query) text(name string) string {
	if all := q.values[name]; len(all) > 0 {
		return all[0]
	}
	if p := q.find(name); p != nil {
		return p.Default
	}
	return ""
}

// number returns a number that was found to be one.
func (q query) number(name string) int64 {
	n, _ := strconv.ParseInt(q.text(name), 10, 64)
	return n
}

func (q query) flag(name string) bool { return q.text(name) == "true" }

// octal returns permission bits.
func (q query) octal(name string) uint32 {
	n, _ := strconv.ParseUint(q.text(name), 8, 16)
	return uint32(n)
}
