package settings

import (
	"net/http"
	"path/filepath"
	"strings"

	"gatehouse/handlers"
	"gatehouse/orchestrator/people"
	"gatehouse/views"
	view "gatehouse/views/settings"

	"github.com/labstack/echo/v4"
)

// ConfigPage answers GET /settings/config.
func (p *Pages) ConfigPage(c echo.Context) error {
	return p.configPage(c, http.StatusOK, nil)
}

// configPage draws the page, with what a reload had to say.
func (p *Pages) configPage(c echo.Context, status int, said *views.Flash) error {
	f, err := p.Begin(c, views.SectionSettings, "Configuration")
	if err != nil {
		return err
	}
	f.Chrome.Path = views.ConfigPath
	conf, err := p.Configuration(f.Ctx)
	if err != nil {
		return err
	}
	page := view.ConfigPage{Chrome: f.Chrome, File: conf.File, LoadedAt: conf.LoadedAt, Warnings: conf.Warnings, Changed: conf.Changed, MayReload: f.Who.Has(people.AdminScope) && conf.File != ""}
	if said != nil {
		page.Flash = said
	}
	if conf.Problem != "" {
		page.Problems = strings.Split(conf.Problem, "\n")
	}
	base := filepath.Base(conf.File)
	for _, s := range conf.Settings {
		section, key, ok := strings.Cut(s.Key, ".")
		if at := strings.IndexByte(section, '['); at >= 0 {
			section, key = section[:at], s.Key[at:]
		} else if !ok {
			key = s.Key
		}
		if n := len(page.Sections); n == 0 || page.Sections[n-1].Name != section {
			page.Sections = append(page.Sections, view.ConfigSection{Name: section})
		}
		last := &page.Sections[len(page.Sections)-1]
		last.Rows = append(last.Rows, view.ConfigRow{Key: key, Value: s.Value, File: base, Line: s.Line, Flag: s.Flag, Env: s.Env, Restart: s.Restart, Pending: s.Pending})
	}
	return handlers.Render(c, status, view.Config(page))
}

// ReloadConfig answers POST /settings/config/reload. A bad file changes nothing.
func (p *Pages) ReloadConfig(c echo.Context) error {
	who, _ := handlers.Who(c)
	if err := p.Reload(c.Request().Context(), who.Name()); err != nil {
		return p.configPage(c, http.StatusUnprocessableEntity, &views.Flash{Bad: true, Text: "The file was not taken, so nothing was changed. What is wrong with it stands below."})
	}
	return handlers.SeeOther(c, views.ConfigPath, "reloaded")
}
