package config

import (
	"cmp"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gatehouse/approval/policy"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/budget"

	"go.yaml.in/yaml/v3"
)

// Value is one setting that is in force, and where it comes from. No secret is in it.
type Value struct {
	Key     string   `json:"key"`   // engine.workers, agents.coder.command, approval.rules[docs].when
	Value   string   `json:"value"` // "•••" for a secret; the part that the environment gave stays ${NAME} unless it is harmless
	Line    int      `json:"line"`  // in the file, from 1; 0: it stands nowhere, this is the default
	Env     []string `json:"env"`   // the variables that it reads
	Restart bool     `json:"restart"`
}

// Hidden is what stands for a secret.
const Hidden = "•••"

// Values lists every setting in the order of the file's sections: those that are written,
// and the defaults of those that are not.
func (c *Config) Values() []Value { return c.list().all }

func (c *Config) list() *lister {
	w := &lister{doc: c.doc, defaults: c.defaults(), written: map[string]string{}}
	root := (*yaml.Node)(nil)
	if c.doc != nil {
		root = c.doc.root
	}
	w.walk("", reflect.TypeFor[File](), root, "", false)
	return w
}

// lister gathers values.
type lister struct {
	doc      *document
	defaults map[string]string
	all      []Value
	written  map[string]string // by key: what is in the file, before the environment came in
}

// walk lists what is at a node that should be of type t; n is nil where nothing stands, and then fallback holds.
func (w *lister) walk(key string, t reflect.Type, n *yaml.Node, fallback string, secret bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case n == nil || isNull(n):
		w.absent(key, t, fallback, secret)
	case t.Kind() == reflect.Struct:
		for f := range t.Fields() {
			name := keyOf(f)
			w.walk(under(key, name), f.Type, child(n, name), f.Tag.Get("default"), secret || hides(name))
		}
	case t.Kind() == reflect.Map:
		for i := 0; i+1 < len(n.Content); i += 2 {
			w.walk(under(key, n.Content[i].Value), t.Elem(), n.Content[i+1], "", secret)
		}
	case t.Kind() == reflect.Slice && plain(t.Elem()):
		var parts, env []string
		for _, c := range n.Content {
			text, names := w.text(key, c, secret)
			parts, env = append(parts, text), append(env, names...)
			w.written[key] += w.doc.written(c) + "\x00"
		}
		w.add(key, strings.Join(parts, ", "), n, env)
	case t.Kind() == reflect.Slice:
		for i, c := range n.Content {
			w.walk(fmt.Sprintf("%s[%s]", key, called(c, i)), t.Elem(), c, "", secret)
		}
	default:
		text, env := w.text(key, n, secret)
		w.add(key, text, n, env)
		w.written[key] = w.doc.written(n)
	}
}

// absent lists the defaults below a key that is not written.
func (w *lister) absent(key string, t reflect.Type, fallback string, secret bool) {
	if t.Kind() == reflect.Struct {
		for f := range t.Fields() {
			w.walk(under(key, keyOf(f)), f.Type, nil, f.Tag.Get("default"), secret)
		}
		return
	}
	if text := cmp.Or(w.defaults[key], fallback); text != "" {
		w.add(key, text, nil, nil)
	}
}

func (w *lister) add(key, text string, n *yaml.Node, env []string) {
	v := Value{Key: key, Value: text, Env: append([]string{}, slices.Compact(env)...), Restart: atStart(key)}
	if n != nil {
		v.Line = n.Line
	}
	w.all = append(w.all, v)
}

// written is a scalar as it is in the file.
func (d *document) written(n *yaml.Node) string {
	if raw, expanded := d.raw[n]; expanded {
		return raw
	}
	return n.Value
}

// text is a scalar as it may be shown, and the variables in it.
func (w *lister) text(key string, n *yaml.Node, secret bool) (string, []string) {
	raw, expanded := w.doc.raw[n]
	var env []string
	for _, m := range variable.FindAllString(raw, -1) {
		if !strings.HasPrefix(m, "$$") {
			env = append(env, m[2:len(m)-1])
		}
	}
	switch {
	case n.Value == "":
		return "", env
	case secret:
		return Hidden, env
	case strings.HasPrefix(key, "channels.webhooks[") && strings.HasSuffix(key, ".url"):
		return site(n.Value), env
	case expanded && len(env) > 0 && !harmless(key) && (isHook(key) || isContent(key) || !isRule(key)):
		return maskedAround(raw), env
	}
	return masked(n.Value), env
}

// maskedAround is masked for a text as it is in the file: the names of its variables stay, except where a secret may
// stand beside them.
func maskedAround(raw string) string {
	names := variable.FindAllString(raw, -1)
	n := 0
	shown := masked(variable.ReplaceAllStringFunc(raw, func(string) string { n++; return fmt.Sprintf("variable%dx", n) }))
	for i, name := range names {
		shown = strings.ReplaceAll(shown, fmt.Sprintf("variable%dx", i+1), name)
	}
	return shown
}

// site is the beginning of an address; the rest of a webhook's may be its secret.
func site(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return Hidden
	}
	return u.Scheme + "://" + u.Host + "/" + Hidden
}

func under(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

// called names an item of a list by its name or id, else by its place from 1.
func called(n *yaml.Node, i int) string {
	for _, key := range []string{"name", "id"} {
		if c := child(n, key); c != nil && c.Value != "" {
			return c.Value
		}
	}
	return strconv.Itoa(i + 1)
}

// plain says whether a list of these is shown on one line.
func plain(t reflect.Type) bool {
	return t.Kind() != reflect.Struct && t.Kind() != reflect.Map && t.Kind() != reflect.Slice
}

// hides says whether what stands at a key is a secret, with all below it.
func hides(name string) bool {
	return slices.Contains([]string{"secret", "secrets", "token", "webhook_secret", "api_key", "api_keys", "credential", "env", "headers"}, name)
}

// harmless says whether a value may be shown although the environment gave it: these are
// names and places, and people need to see them to find a mistake.
func harmless(key string) bool {
	last := key[strings.LastIndexByte(key, '.')+1:]
	return slices.Contains([]string{"listen", "public_url", "timezone", "database", "data", "path", "branch", "model", "base_url", "agent", "owner", "repository"}, last)
}

// credentials finds who signs in in an address, wherever it stands in a text. It reads the
// text and does not parse it: a password that is written oddly, or makes the address
// unreadable, is a secret all the same.
var credentials = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*)://([^\s/?#]*)@`)

// masked hides the password in an address, and what may be a key in its query or path. Of
// an address of the web it hides the name, too, which often is a token.
func masked(s string) string {
	u, err := url.Parse(s)
	if start := strings.Index(s, "://"); err != nil && start >= 0 { // where it ends cannot be told
		if end := strings.LastIndexByte(s, '@'); end > start {
			s = s[:start+3] + Hidden + s[end:]
		}
	}
	s = credentials.ReplaceAllStringFunc(s, func(part string) string {
		m := credentials.FindStringSubmatch(part)
		user, _, both := strings.Cut(m[2], ":")
		switch {
		case strings.EqualFold(m[1], "http") || strings.EqualFold(m[1], "https"):
			return m[1] + "://" + Hidden + "@"
		case both:
			return m[1] + "://" + user + ":" + Hidden + "@"
		}
		return part
	})
	if err == nil && u.Scheme != "" && u.RawQuery != "" {
		s = strings.Replace(s, "?"+u.RawQuery, "?"+Hidden, 1)
	}
	return s
}

// atStart says whether a setting is read at the start only; every other one follows a
// reload.
func atStart(key string) bool {
	return slices.ContainsFunc([]string{"server.listen", "server.public_url", "database", "data", "telemetry."}, func(k string) bool {
		return key == k || strings.HasSuffix(k, ".") && strings.HasPrefix(key, k)
	}) || botAtStart(key)
}

// defaults are the values in force by key where nothing is written, of those that no tag of the file names.
func (c *Config) defaults() map[string]string {
	s := c.Engine.Settings
	all := map[string]string{
		"server.listen": c.Listen, "server.public_url": c.PublicURL, "database": masked(c.Database), "data": c.Data, "engine.max_depth": strconv.Itoa(s.MaxDepth),
		"approval.on_no": policy.TellCaller, // what holds where nothing is written
	}
	confined(all, "engine.agent_defaults.", agent.Spec{Sandbox: agent.SandboxAuto, Network: agent.NetworkOpen})
	loop := c.LLM.Loop
	for key, n := range map[string]int{"window": loop.Window, "warn": loop.Warn, "block": loop.Block, "breaker": loop.Breaker} {
		all["engine.loop."+key] = strconv.Itoa(n)
	}
	allowed(all, "engine.budget", s.Budget)
	for _, a := range c.Engine.Agents.All() {
		key := "agents." + a.Name + "."
		confined(all, key, a)
	}
	for name, r := range c.Engine.Repositories {
		all["repositories."+name+".branch"] = cmp.Or(r.Branch, "what HEAD names there")
	}
	for _, t := range c.Triggers {
		key := "triggers[" + t.Name + "]."
		all[key+"overlap"], all[key+"missed"] = t.Overlap, t.Missed
		if t.Zone != nil {
			all[key+"timezone"] = t.Zone.String()
		}
		if t.Window > 0 {
			all[key+"window"], all[key+"rate"] = agent.Span(t.Window), strconv.Itoa(t.Rate)
		}
	}
	return all
}

// allowed notes the limits of a budget.
func allowed(all map[string]string, key string, l budget.Limits) {
	if l.Tokens != nil {
		all[key+".tokens"] = strconv.FormatInt(*l.Tokens, 10)
	}
	if l.MicroUSD != nil {
		all[key+".usd"] = strconv.FormatFloat(float64(*l.MicroUSD)/1e6, 'f', -1, 64)
	}
}
