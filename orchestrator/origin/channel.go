package origin

// Channel is a way in or out: where somebody sends tasks, is asked, or decides.
type Channel string

// The channels, and what tasks and decisions say that came by none.
const (
	Inbox    Channel = "inbox" // the pages' own list, where nobody decides as such: that is Web
	Web      Channel = "web"
	Chat     Channel = "chat" // of the pages
	Telegram Channel = "telegram"
	CLI      Channel = "cli"
	API      Channel = "api"
	Webhook  Channel = "webhook"  // in: a trigger; out: news for other systems
	Schedule Channel = "schedule" // a trigger
	Revert   Channel = "revert"   // a task that undoes a landing
	Rule     Channel = "rule"     // a decision that no person made
)

// channel is what the rest of the house knows of one channel. A new one is a row here, and
// its own package.
type channel struct {
	Channel
	title string // of a row or a figure: "Telegram"
	said  string // where somebody decided, in a sentence: "in the chat"
	shown string // the same on pages and in Slack; "" as said
	read  string // where somebody read a change; "" as said
	about string // what it is for, on the page of channels
	// decides: people decide there. whole: they have all of a change before them there, so
	// every yes is let in. cards: there are cards, which an agent's mode may ask for by the
	// channel's name.
	decides, whole, cards bool
}

// table has the channels in the order in which people see them.
var table = []channel{
	{Channel: Inbox, title: "Inbox", about: "The page Approvals. Every request is here."},
	{Channel: Web, title: "Web", said: "on the web", decides: true, whole: true},
	{Channel: Chat, title: "Chat", said: "in the chat", shown: "in chat", about: "Cards in the chat of these pages.", decides: true, cards: true},
	{Channel: Telegram, title: "Telegram", said: "on Telegram", read: "in Telegram", about: "Cards with buttons in Telegram.", decides: true, cards: true},
	{Channel: CLI, title: "Command line", said: "on the command line", decides: true, whole: true},
	{Channel: API, title: "API", said: "by the API", shown: "through the API", decides: true, whole: true},
	{Channel: Webhook, title: "Webhooks", about: "Tells other systems. Nobody decides there."},
	{Channel: Rule, title: "A rule"},
}

// row is what is known of c; an unknown one has its name as the title.
func (c Channel) row() channel {
	for _, k := range table {
		if k.Channel == c {
			return k
		}
	}
	return channel{Channel: c, title: string(c)}
}

func those(is func(channel) bool) []Channel {
	var all []Channel
	for _, k := range table {
		if is(k) {
			all = append(all, k.Channel)
		}
	}
	return all
}

// Deciding lists the channels in which people decide.
func Deciding() []Channel { return those(func(k channel) bool { return k.decides }) }

// Cards lists those with cards, which an agent's mode may name.
func Cards() []Channel { return those(func(k channel) bool { return k.cards }) }

// Modes lists what an agent's key approval takes.
func Modes() []string {
	all := []string{"auto"}
	for _, c := range Cards() {
		all = append(all, string(c))
	}
	return append(all, string(Web), "any")
}

// HasCards reports whether there are cards that people decide on.
func (c Channel) HasCards() bool { return c.row().cards }

// ShowsWhole reports whether whoever decides there has all of a change before them.
func (c Channel) ShowsWhole() bool { return c.row().whole }

// Triggers reports whether tasks of this channel are made by a trigger that has a name.
func (c Channel) Triggers() bool { return c == Webhook || c == Schedule }

// Title is its name as a title.
func (c Channel) Title() string { return c.row().title }

// About says what it is for.
func (c Channel) About() string { return c.row().about }

// Said says in a sentence where somebody decided: "on Telegram"; "" for what is no place.
func (c Channel) Said() string { return c.row().said }

// Shown is Said in a line of a page or a message.
func (c Channel) Shown() string { return or(c.row().shown, c.Said()) }

// Read says where somebody read a change: "in Telegram".
func (c Channel) Read() string { return or(c.row().read, c.Said()) }

// Words are Shown, for tasks and decisions of any version: one that is not known is named.
func (c Channel) Words() string {
	if words := c.Shown(); words != "" || c == "" || c == Rule {
		return words
	}
	return "on " + string(c)
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
