package handlers

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/sharedctx"
	"gatehouse/views"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// Auth is what the pages ask of signin.Auth.
type Auth interface {
	Password(ctx context.Context, name, password, address string) (people.User, error)
	CheckLink(ctx context.Context, code string) error
	Link(ctx context.Context, code, address string) (people.User, error)
	First(ctx context.Context) (bool, error)
	Open(c echo.Context, u people.User) error
	Close(c echo.Context) error
	// Here is the hash of the session that makes the request.
	Here(c echo.Context) string
	// MakeLink makes a one-time sign-in link and returns its code.
	MakeLink(ctx context.Context, actor string, u people.User) (string, error)
	// MakeToken returns the secret of a new token.
	MakeToken(ctx context.Context, actor string, t people.Token) (string, error)
	// ChangePassword signs the person out everywhere but here.
	ChangePassword(c echo.Context, u people.User, old, next string) error
}

// Site has the HTML handlers.
type Site struct {
	Engine   Engine
	Reader   Reader
	Ids      Ids
	Requests Requests
	// Context is the shared context for the person of that name.
	Context  func(actor, userID string) sharedctx.Store
	Gateway  Gateway
	Reviewer Reviewer
	Auth     Auth
	Now      func() time.Time
	Log      *slog.Logger
	// FourEyes says whether the setting is on; pages tell when it is not.
	FourEyes func() bool
	// Loopback: the server listens on this machine only, so the sign-in page presses
	// its own button.
	Loopback bool
	// Outbox, Links and Places are what the settings of channels show; Places are those
	// of the configuration in force.
	Outbox Outbox
	Links  Links
	Places func() []Place
	// Configuration is what is in force; Reload loads it again, and changes nothing where
	// the file is bad; actor is who asked.
	Configuration func(ctx context.Context) (Configuration, error)
	Reload        func(ctx context.Context, actor string) error
	// Triggers make tasks by themselves.
	Triggers Triggers
	// People keeps who may sign in.
	People People
	// PublicURL is where people reach the server; sign-in links begin with it.
	PublicURL string
	// Traces has the trees and logs of tasks in parts.
	Traces Traces
	// SavedViews keeps lines of filters under names.
	SavedViews SavedViews
	// Sums are those of the log.
	Sums  Insights
	Proof Proof
	Holds Holds
	// Condition reads how the house itself does; nil where nothing is known of that.
	Condition func(context.Context) (Condition, error)
	// History answers lines of filters.
	History History
	// Snapshots is where what a page reads comes from.
	Snapshots Snapshots
	// Examples are the demo's ready tasks; with any, pages show the demo's strip.
	Examples []views.Example
}

// Render writes a page. It is drawn as a whole first, so that an error in the middle
// is an error page and not half a page.
func Render(c echo.Context, status int, page templ.Component) error {
	var b bytes.Buffer
	if err := page.Render(c.Request().Context(), &b); err != nil {
		return err
	}
	return c.HTMLBlob(status, b.Bytes())
}

// Frame is what one page needs before anything else: who looks, what surrounds the
// page, and who may decide.
type Frame struct {
	Ctx     context.Context
	Who     Caller
	Chrome  views.Chrome
	Voters  approval.Electorate
	Pending []approval.Request // newest first, at most 200
	// asking are the delegations that wait for people with a call or a question, also those
	// whose requests the reader may not see.
	asking map[string]bool
}

// Begin reads the frame. The position of the log is read before anything that the
// page shows, so that its live connection misses nothing.
func (p *Site) Begin(c echo.Context, section views.Section, title string) (*Frame, error) {
	ctx := c.Request().Context()
	who, _ := Who(c)
	f := &Frame{Ctx: ctx, Who: who}
	c.Response().Header().Set(sessionHeader, who.SessionName)
	pos, err := p.Reader.LastPosition(ctx)
	if err != nil {
		return nil, err
	}
	f.Chrome = views.Chrome{
		Title: title, Section: section, Path: PathOf(c), CanSend: who.Has(people.TasksWrite), Now: p.Now(),
		Person: PersonOf(who), StreamURL: "/api/v1/events?after=" + strconv.FormatInt(pos, 10) + "&session=" + who.SessionName,
		Demo: len(p.Examples) > 0, Flash: flashOf(c), Zone: who.User.Zone, Session: who.SessionName,
	}
	if !who.Has(people.ApprovalsRead) && !who.Has(people.TasksWrite) {
		return f, nil
	}
	if f.Pending, err = p.Requests.Pending(ctx, 200); err != nil {
		return nil, err
	}
	f.asking = make(map[string]bool, len(f.Pending))
	for _, r := range f.Pending {
		if r.IsAction() || r.IsQuestion() {
			f.asking[r.DelegationID] = true
		}
	}
	if !who.Has(people.ApprovalsRead) {
		f.Pending = slices.DeleteFunc(slices.Clone(f.Pending), func(r approval.Request) bool { return !OwnQuestion(who, r) })
		if len(f.Pending) == 0 {
			return f, nil
		}
	}
	if f.Voters, err = p.Gateway.Electorate(ctx); err != nil {
		return nil, err
	}
	for _, r := range f.Pending {
		if f.MayDecide(r) {
			f.Chrome.ToDecide++
		}
	}
	return f, nil
}

// OwnQuestion reports whether r is what an agent asks in the course of the caller's own task:
// they may read and answer it, whatever their role is.
func OwnQuestion(who Caller, r approval.Request) bool {
	return r.IsQuestion() && who.Run == nil && who.User.ID != "" && who.User.ID == r.RequesterID && who.Has(people.TasksWrite)
}

// sessionHeader says whose page an answer is: a tab that somebody opened before another
// one signed in does not take the other's answers in, and shares no events with theirs.
const sessionHeader = "Gatehouse-Session"

// MayDecide reports whether the reader may say yes to r, or answer it.
func (f *Frame) MayDecide(r approval.Request) bool {
	yes := approval.Approve
	if r.IsQuestion() {
		yes = approval.Respond
	}
	return r.State == approval.Pending && f.Voters.May(f.Who.Principal, r, yes) == nil
}

func PersonOf(who Caller) *views.Person {
	if who.User.ID == "" {
		return nil
	}
	return &views.Person{Name: who.User.Name, Roles: each.Of(who.User.Roles, each.String), Rights: each.Of(who.Scopes,
		each.String)}
}

// PathOf is the address of the page with its query, without what was said once.
func PathOf(c echo.Context) string {
	u := *c.Request().URL
	q := u.Query()
	q.Del("done")
	u.RawQuery = q.Encode()
	return u.RequestURI()
}

// said is what a form's redirect says it did, by the value of ?done=. Only these
// words are ever shown, so that no link can put words into our mouth.
var said = map[string]string{
	"sent":            "The task was sent.",
	"cancelled":       "The task was cancelled. What had started was stopped.",
	"retried":         "It is tried again.",
	"paused":          "The task is paused. What models had stored is kept; programs that run go on to their end.",
	"resumed":         "The task goes on.",
	"told":            "Sent. Below stands when the agent was told.",
	"forked":          "This is the fork: it goes on from that turn. The first task stays as it is.",
	"approve":         "Your approval was counted.",
	"reject":          "You rejected this. Nothing landed.",
	"handed":          "Your approval was counted.",
	"not_handed":      "You rejected this. The work was not handed on.",
	"called":          "Your approval was counted.",
	"granted":         "Your approval was counted, for the rest of this task.",
	"not_called":      "You rejected this. The call is not made.",
	"call_edited":     "Your edit was stored. It is asked again, and another person has to approve it.",
	"answer":          "Your answer was given to the agent.",
	"not_answered":    "The agent is told that nobody answers this.",
	"grant_revoked":   "It was revoked. From now on such a call is asked again.",
	"request_changes": "The agent runs again with your comments.",
	"renew":           "The agent makes this again on the branch as it is today. Nothing landed.",
	"withdraw":        "Your approval was withdrawn.",
	"some":            "Your choice was stored. A revision with these files is made and checked; your yes counts on it.",
	"edit":            "Your edit was stored. It is checked as a revision of its own, and another person has to approve it.",
	"reverted":        "The reverse of the change was asked for. It needs a yes of its own.",
	"landing":         "Landing is tried again.",
	"lands_now":       orchestrator.LandsNow,
	"tried":           "It is tried again now.",
	"held":            "The hold is set. Retention removes nothing that it covers.",
	"lifted":          "The hold is lifted. What is old of it goes with the next run of retention.",
	"tested":          "The test card was sent. Look there, and tap its button.",
	"value_written":   "The value was written. Agents that may read it are given it from their next run on.",
	"value_deleted":   "The value was deleted. Its history stays for 90 days.",
	"reloaded":        "The configuration was loaded again and is in force.",
	"redelivered":     "It is delivered again. This is the new delivery.",
	"password":        "Your password was changed. You were signed out everywhere else.",
	"signed_out":      "You were signed out everywhere else.",
	"zone":            "Times are shown in that zone from now on.",
	"muted":           "The messages of your tasks stay as they are from now on.",
	"unmuted":         "The messages of your tasks go on until their ends again.",
	"person_added":    "The person was added. Make a sign-in link, and give it to them.",
	"roles":           "The roles were changed. They hold from now on.",
	"disabled":        "Nobody gets in under that name any more: signed out everywhere, and no token works. The history stays.",
	"enabled":         "The person may sign in again. Their old sessions and tokens stay ended; they make a new token.",
	"away":            "The absence was stored. Their deputy is asked in their place while it lasts.",
	"back":            "The absence has ended.",
	"revoked":         "The token was revoked. Programs that use it are refused from now on.",
	"view_saved":      "The view was saved. It is under Views.",
	"view_deleted":    "The view was deleted.",
	"unlinked":        "The account was unlinked. What is tapped there counts no more.",
}

// Done is what a page says once after a form did that.
func Done(word string) string { return said[word] }

func flashOf(c echo.Context) *views.Flash {
	if text, ok := said[c.QueryParam("done")]; ok {
		return &views.Flash{Text: text}
	}
	return nil
}

// SeeOther leads a browser to a page after a form.
func SeeOther(c echo.Context, path, done string) error {
	if done != "" {
		path += "?done=" + done
	}
	return c.Redirect(http.StatusSeeOther, path)
}

// ErrorPage is the page of a fault. It asks the database for nothing.
func ErrorPage(c echo.Context, f Fault, now time.Time) error {
	who, _ := Who(c)
	heading := cmp.Or(headings[f.Status], "That was not done")
	page := views.ErrorPage{
		Chrome: views.Chrome{Title: heading, Path: PathOf(c), Person: PersonOf(who), CanSend: who.Has(people.TasksWrite), Now: now},
		Status: f.Status, Heading: heading, Text: f.Message, ErrorID: f.ID,
	}
	for _, id := range f.Candidates {
		page.Nearest = append(page.Nearest, views.Crumb{Text: id, Href: HrefOf(id)})
	}
	return Render(c, f.Status, views.Error(page))
}

var headings = map[int]string{
	http.StatusBadRequest:          "That was not understood",
	http.StatusUnauthorized:        "You are not signed in",
	http.StatusForbidden:           "You may not do this",
	http.StatusNotFound:            "There is nothing here",
	http.StatusMethodNotAllowed:    "That was not understood",
	http.StatusConflict:            "That cannot be done now",
	http.StatusTooManyRequests:     "Too many tries",
	http.StatusInternalServerError: "That failed on our side",
	http.StatusServiceUnavailable:  "This is not available now",
}

func HrefOf(id string) string {
	if strings.HasPrefix(id, orchestrator.RequestPrefix) {
		return views.ApprovalHref(id)
	}
	return views.DelegationHref(id)
}

// Snapshots lets a page be read as of one moment; the store does. Every read with the
// context sees the database as it was at the first of them, until done is called.
type Snapshots interface {
	Snapshot(ctx context.Context) (_ context.Context, done func(), err error)
}

// OneMoment makes all that a page reads come from one snapshot: read one after another,
// the parts of a task contradict each other while it goes on. The snapshot ends when the
// answer begins, so that a slow reader holds no connection to the database.
func (p *Site) OneMoment(page echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		ctx, done, err := p.Snapshots.Snapshot(c.Request().Context())
		if err != nil {
			return err
		}
		defer done()
		c.Response().Before(done)
		c.SetRequest(c.Request().WithContext(ctx))
		return page(c)
	}
}
