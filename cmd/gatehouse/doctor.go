package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/approval/sqlstore"
	"gatehouse/cmd/gatehouse/internal/config"
	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/store"
)

// DoctorCmd looks for what is missing or broken.
type DoctorCmd struct{}

// finding is one thing that was looked at.
type finding struct {
	Name string `json:"name"`
	// State is ok; look, for what works but deserves a look; or broken.
	State string `json:"state"`
	Text  string `json:"text"` // what is the case and, unless it is ok, what to do
}

// The states of a finding, and how long one repository may take to answer.
const (
	fine     = "ok"
	odd      = "look"
	broke    = "broken"
	lookTime = 30 * time.Second
)

// Run prints one line a finding and exits 1 when something is broken.
func (c *DoctorCmd) Run(ctx context.Context, sh *console.Shell) error {
	var all []finding
	var printed error
	add := func(found ...finding) {
		for _, f := range found {
			all = append(all, f)
			if !sh.JSON && printed == nil {
				printed = printFinding(sh, f)
			}
		}
	}
	cfg, err := config.LoadFor(sh.Globals.Config, sh.Env)
	if err != nil {
		add(finding{"configuration", broke, console.Line(err.Error())})
	} else {
		add(finding{"configuration", fine, cmp.Or(cfg.Path, "no file; the defaults apply")})
		for _, text := range unset(cfg) {
			add(finding{"configuration", odd, text})
		}
		diagnose(ctx, cfg, add)
		add(checkURL(cfg.PublicURL))
	}
	add(checkServer(ctx, sh))
	if printed != nil || ctx.Err() != nil {
		return errors.Join(printed, ctx.Err())
	}
	broken := 0
	for _, f := range all {
		if f.State == broke {
			broken++
		}
	}
	if sh.JSON {
		if err := sh.Document(map[string]any{"ok": broken == 0, "findings": all}); err != nil {
			return err
		}
	}
	if broken > 0 {
		return console.Fail(console.ExitFailed, "%s broken; the lines with ✕ say what to do.", console.Counted(broken, "thing"))
	}
	return nil
}

func printFinding(sh *console.Shell, f finding) error {
	sign := map[string]string{fine: sh.Paint("ok", "✓"), odd: sh.Paint("wait", "⚠"), broke: sh.Paint("bad", "✕")}[f.State]
	return sh.Say("%s %s  %s", sign, console.Pad(f.Name, 16), console.Line(f.Text))
}

// diagnose looks at everything that the configuration names.
func diagnose(ctx context.Context, cfg *config.Config, add func(...finding)) {
	scratch, err := os.MkdirTemp("", "gatehouse-doctor-")
	if err != nil {
		add(finding{"temporary files", broke, "No temporary folder can be made: " + err.Error() + ". Set TMPDIR to one that can be written."})
		return
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	mirrors := patch.NewMirrors(filepath.Join(scratch, "mirrors"), patch.Options{Logger: quiet()})
	add(checkGit(ctx, mirrors))
	if missing := cfg.Lacks("database"); missing != "" {
		add(notLooked("database", missing))
	} else {
		add(checkDatabase(ctx, cfg)...)
		add(checkChannels(ctx, cfg)...)
		for _, text := range nobody(ctx, cfg) {
			add(finding{"groups", odd, text})
		}
	}
	add(checkData(cfg.Data))
	add(checkRoom(cfg)...)
	checkouts := map[string]checkout{}
	for _, name := range slices.Sorted(maps.Keys(cfg.Engine.Repositories)) {
		if missing := cfg.Lacks("repositories." + name); missing != "" {
			add(notLooked("repository "+name, missing))
			continue
		}
		f, at := checkRepository(ctx, mirrors, cfg.Engine.Repositories[name])
		if add(f); at.mirror != nil {
			if f, dirty := checkFolder(ctx, name, at); dirty {
				add(f)
			}
			checkouts[name] = at
		}
	}
	for _, a := range cfg.Engine.Agents.All() {
		switch a.Kind {
		case agent.Command:
			add(checkProgram(ctx, a, checkouts))
			add(limited(a)...)
			if a.TrustCheckout {
				add(trusting(a))
			}
		case agent.Remote:
			if missing := cfg.Lacks("agents." + a.Name); missing != "" {
				add(notLooked("agent "+a.Name, missing))
				continue
			}
			add(checkRemote(ctx, a))
		}
	}
	add(checkSandbox(ctx, scratch, cfg.Engine.Agents.All())...)
	add(checkWritable(ctx, cfg)...)
}

// gitFixed is the first version without CVE-2025-48384: a cloned repository could run
// a program through the name of a submodule. Gatehouse never clones submodules.
var gitFixed = []int{2, 43, 7}

func checkGit(ctx context.Context, m *patch.Mirrors) finding {
	version, err := m.GitVersion(ctx)
	if err != nil {
		return finding{"git", broke, "git does not run: " + err.Error() + ". Install git."}
	}
	if slices.Compare(numbers(version), gitFixed) < 0 {
		return finding{"git", odd, version + " has a known hole (CVE-2025-48384). Install 2.43.7 or later, or a version that your system has fixed."}
	}
	return finding{"git", fine, version}
}

// numbers reads the leading numbers of a version: 2.39.5 (Apple Git-1) is 2 39 5.
func numbers(version string) []int {
	var all []int
	for part := range strings.SplitSeq(version, ".") {
		digits := part[:len(part)-len(strings.TrimLeft(part, "0123456789"))]
		n, err := strconv.Atoi(digits)
		if err != nil {
			break
		}
		if all = append(all, n); digits != part {
			break
		}
	}
	return all
}

func checkDatabase(ctx context.Context, cfg *config.Config) []finding {
	if file, ok := strings.CutPrefix(cfg.Database, "sqlite:"); ok {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			if f := writable("database", filepath.Dir(file)); f.State != fine {
				return []finding{f}
			}
			return []finding{{"database", fine, file + " is not there yet; the first start makes it"}}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	s, err := store.Open(ctx, cfg.Database, store.Options{Node: "doctor", Logger: quiet()})
	if err != nil {
		return []finding{{"database", broke, err.Error()}}
	}
	have, _, err := s.Version(ctx)
	users, err2 := s.Users(ctx)
	rules, err3 := checkRules(ctx, cfg, s)
	if err := errors.Join(err, err2, err3, s.Close()); err != nil {
		return []finding{{"database", broke, err.Error()}}
	}
	text := fmt.Sprintf("%s, version %d, %s", s.Dialect(), have, console.Counted(len(users), "user"))
	if len(users) == 0 {
		return append([]finding{{"database", odd, text + ". Make the first one: gatehouse user add NAME --role admin --role approver"}}, rules...)
	}
	return append([]finding{{"database", fine, text}}, rules...)
}

// checkRules compares the rules of the file with those in force; nothing where no server has
// taken any.
func checkRules(ctx context.Context, cfg *config.Config, s *store.Store) ([]finding, error) {
	const name = "rules"
	taken, err := s.Configuration(ctx)
	if err != nil || len(taken.Settings) == 0 {
		return nil, err
	}
	if missing := cfg.LacksRule(); missing != "" {
		return []finding{notLooked(name, missing)}, nil
	}
	day := func(t time.Time) string { return t.In(cfg.Location).Format("2 Jan 2006 15:04") }
	if len(cfg.OtherRules()(taken.Settings)) == 0 {
		return []finding{{name, fine, "this file has those in force, taken on " + day(taken.At)}}, nil
	}
	before, err := s.RulesTaken(ctx, cfg.Recorded())
	text := "The rules of this file are not those in force, which were taken on " + day(taken.At) + ". A server that has loaded them counts no yes and lands nothing; one that loads this file makes them count."
	if !before.IsZero() {
		text = "The rules of this file were in force before, since " + day(before) + ", and others took their place on " + day(taken.At) +
			". A server that starts with them counts no yes and lands nothing while another works by those in force. To make them count again have it load the file once more (SIGHUP, or Settings → Configuration)."
	}
	return []finding{{name, odd, text}}, err
}

func checkData(dir string) finding { return writable("data folder", dir) }

// writable tries to make a file in dir or, where it is not there yet, in the folder
// that it would be made in.
func writable(name, dir string) finding {
	at := dir
	for {
		info, err := os.Stat(at)
		switch {
		case err == nil && info.IsDir():
			f, err := os.CreateTemp(at, ".gatehouse-doctor-")
			if err != nil {
				return finding{name, broke, at + " cannot be written: " + errors.Unwrap(err).Error() + ". Give this user the right, or name another folder."}
			}
			_ = f.Close()
			_ = os.Remove(f.Name())
			if at != dir {
				return finding{name, fine, dir + " can be made"}
			}
			return finding{name, fine, dir}
		case err == nil:
			return finding{name, broke, at + " is a file and no folder. Name another one."}
		case !errors.Is(err, fs.ErrNotExist) || filepath.Dir(at) == at:
			return finding{name, broke, dir + " cannot be looked at: " + err.Error()}
		}
		at = filepath.Dir(at)
	}
}

// checkout is what an agent on a repository gets; the zero value when it cannot be read.
type checkout struct {
	mirror *patch.Mirror
	head   patch.Base
}

func checkRepository(ctx context.Context, mirrors *patch.Mirrors, r patch.Repository) (finding, checkout) {
	name := "repository " + r.Name
	limited, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	m := mirrors.Open(r)
	if err := m.Fetch(limited); err != nil {
		if limited.Err() != nil && ctx.Err() == nil {
			return finding{name, odd, fmt.Sprintf("it answers, and copying it takes longer than %s. The first start will take as long.", lookTime)}, checkout{}
		}
		return finding{name, broke, err.Error()}, checkout{}
	}
	head, err := m.Branch(limited, "")
	if err != nil {
		return finding{name, broke, err.Error()}, checkout{}
	}
	return finding{name, fine, "branch " + head.Branch + " at " + console.Abbreviated(head.Commit)}, checkout{m, head}
}

func checkServer(ctx context.Context, sh *console.Shell) finding {
	api, err := sh.Client(ctx)
	if err == nil {
		err = api.Live(ctx)
	}
	if err != nil {
		return finding{"server", odd, err.Error()}
	}
	return finding{"server", fine, sh.URL + " answers"}
}

// checkURL says whether links can be opened on a phone.
func checkURL(public string) finding {
	const name = "public_url"
	u, err := url.Parse(public)
	if err != nil {
		return finding{name, broke, public + " is no address."}
	}
	host := u.Hostname()
	ip := net.ParseIP(host)
	switch {
	case host == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsUnspecified()) || ip == nil && !strings.Contains(host, "."):
		return finding{name, odd, public + " opens on this machine only, so links in messages do not work on a phone. Set server.public_url to the address that others use."}
	case u.Scheme != "https":
		return finding{name, odd, public + " is not https, so what is sent can be read on the way. Put a proxy with a certificate in front."}
	}
	return finding{name, fine, public}
}

// notLooked is a finding about what nobody can look at without a secret.
func notLooked(name, missing string) finding {
	return finding{name, odd, "It is not looked at, because ${" + missing + "} is missing here. Run doctor where the server's secrets are."}
}

// nobody says what of groups, and of what asks them, names nobody who can approve. Who there
// is stands in the database: where it cannot be read, that is what it says.
func nobody(ctx context.Context, cfg *config.Config) []string {
	if len(cfg.Groups) == 0 && !cfg.NeedsSeveral() {
		return nil
	}
	users, err := everybody(ctx, cfg)
	switch {
	case len(cfg.Groups) == 0 && (err != nil || len(users) == 0): // no file names anybody; the database has its own line
		return nil
	case err != nil:
		return []string{"Whether groups name people is not looked at: " + err.Error()}
	case len(users) == 0:
		return []string{"Groups name people, and there is nobody yet. Make the first one: gatehouse user add NAME --role admin --role approver"}
	}
	return cfg.Nobody(users)
}

// everybody reads who there is, and makes nothing.
func everybody(ctx context.Context, cfg *config.Config) ([]people.User, error) {
	if missing := cfg.Lacks("database"); missing != "" {
		return nil, fmt.Errorf("${%s} is missing here, and with it the database. Run it where the server's secrets are", missing)
	}
	if file, ok := strings.CutPrefix(cfg.Database, "sqlite:"); ok {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the database %s is not there yet. Run it again once there are users", file)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	s, err := sqlstore.Open(ctx, cfg.Database, store.Options{Node: "doctor", Logger: quiet()})
	if err != nil {
		return nil, err
	}
	users, err := s.Users(ctx)
	return users, errors.Join(err, s.Close())
}
