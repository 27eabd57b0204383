package handlers

import (
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"gatehouse/orchestrator/people"
	"gatehouse/views"
	settingsview "gatehouse/views/settings"

	"github.com/labstack/echo/v4"
)

// Configuration is what is in force, without secrets.
type Configuration struct {
	File     string // "" when there is none
	LoadedAt time.Time
	Settings []Setting
	Warnings []string
	Problem  string   // why the file, as it is now, would not be taken
	Changed  []string // keys that a reload would change
}

// Setting is one value and where it comes from.
type Setting struct {
	Key, Value string
	Line       int      // in the file; 0: it stands nowhere
	Flag       string   // the flag that it was given with
	Env        []string // variables that it reads
	Restart    bool     // read at the start only
	Pending    string   // what it is after a restart, where that differs
}

// ConfigPage answers GET /settings/config.
func (p *Pages) ConfigPage(c echo.Context) error {
	return p.configPage(c, http.StatusOK, nil)
}

// configPage draws the page, with what a reload had to say.
func (p *Pages) configPage(c echo.Context, status int, said *views.Flash) error {
	f, err := p.begin(c, views.SectionSettings, "Configuration")
	if err != nil {
		return err
	}
	f.chrome.Path = views.ConfigPath
	conf, err := p.Configuration(f.ctx)
	if err != nil {
		return err
	}
	page := settingsview.ConfigPage{Chrome: f.chrome, File: conf.File, LoadedAt: conf.LoadedAt, Warnings: conf.Warnings, Changed: conf.Changed, MayReload: f.who.Has(people.AdminScope) && conf.File != ""}
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
			page.Sections = append(page.Sections, settingsview.ConfigSection{Name: section})
		}
		last := &page.Sections[len(page.Sections)-1]
		last.Rows = append(last.Rows, settingsview.ConfigRow{Key: key, Value: s.Value, File: base, Line: s.Line, Flag: s.Flag, Env: s.Env, Restart: s.Restart, Pending: s.Pending})
	}
	return render(c, status, settingsview.Config(page))
}

// ReloadConfig answers POST /settings/config/reload. A bad file changes nothing.
func (p *Pages) ReloadConfig(c echo.Context) error {
	who, _ := Who(c)
	if err := p.Reload(c.Request().Context(), who.Name()); err != nil {
		return p.configPage(c, http.StatusUnprocessableEntity, &views.Flash{Bad: true, Text: "The file was not taken, so nothing was changed. What is wrong with it stands below."})
	}
	return seeOther(c, views.ConfigPath, "reloaded")
}
