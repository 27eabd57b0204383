package handlers

import (
	"fmt"
	"mime"
	"net/url"
	"path"
	"strings"

	"github.com/labstack/echo/v4"
)

// WithParam sets one parameter of an address of ours.
func WithParam(path, key, value string) string {
	u, err := url.Parse(path)
	if err != nil {
		return path
	}
	q := u.Query()
	q.Set(key, value)
	u.RawQuery = q.Encode()
	return u.String()
}

// WithoutParams drops parameters of an address.
func WithoutParams(path string, keys ...string) string {
	u, err := url.Parse(path)
	if err != nil {
		return path
	}
	q := u.Query()
	for _, k := range keys {
		q.Del(k)
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// LocalPath keeps a redirect on this server: one slash, no host, no tricks with
// backslashes or control characters, which browsers read as slashes or drop.
func LocalPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Opaque != "" || !strings.HasPrefix(next, "/") ||
		strings.HasPrefix(next, "//") || strings.ContainsFunc(next, func(r rune) bool { return r == '\\' || r < ' ' || r == 0x7f }) {
		return "/"
	}
	if strings.HasPrefix(u.Path, "//") || strings.HasPrefix(u.Path, "/login") || strings.HasPrefix(u.Path, "/logout") {
		return "/"
	}
	return next
}

// AsDownload makes an answer one that is saved: what an agent made is never opened as a
// page of this server. The n-th one has its number where its name has no letters to keep.
func AsDownload(c echo.Context, name string, n int) {
	h := c.Response().Header()
	h.Set(echo.HeaderContentDisposition, mime.FormatMediaType("attachment", map[string]string{"filename": FileName(name, n)}))
	h.Set(echo.HeaderXContentTypeOptions, "nosniff")
	h.Set(echo.HeaderContentSecurityPolicy, "default-src 'none'; sandbox")
}

// PathName is a parameter of the path as the caller wrote it: names may have any letters.
func PathName(c echo.Context, param string) string {
	name := c.Param(param)
	if c.Request().URL.RawPath == "" {
		return name // it is not escaped any more
	}
	if plain, err := url.PathUnescape(name); err == nil {
		return plain
	}
	return name
}

// FileName is a name that any system can store: of what an agent chose only letters,
// digits and a few marks stay.
func FileName(name string, n int) string {
	name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
			return r
		}
		return '_'
	}, name)
	if name = strings.TrimLeft(name, "._-"); name == "" {
		return fmt.Sprintf("artifact-%d.txt", n)
	}
	return name[:min(len(name), 100)]
}
