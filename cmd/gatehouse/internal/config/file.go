package config

import "gatehouse/web/wire"

// File is gatehouse.yaml as written. Durations are text ("30s", "72h") and paths
// are relative to the file's folder until config.go has made values of them.
type File struct {
	Server       Server                `yaml:"server"`
	Database     string                `yaml:"database"`
	Data         string                `yaml:"data"`
	Engine       Engine                `yaml:"engine"`
	Repositories map[string]Repository `yaml:"repositories"`
	Providers    map[string]Provider   `yaml:"providers"`
	Agents       map[string]Agent      `yaml:"agents"`
	Hooks        []Hook                `yaml:"hooks"`
	Approval     Approval              `yaml:"approval"`
	Channels     Channels              `yaml:"channels"`
	Context      Context               `yaml:"context"`
	Triggers     []Trigger             `yaml:"triggers"`
	Groups       map[string][]string   `yaml:"groups"`
	Telemetry    Telemetry             `yaml:"telemetry"`
	Retention    Retention             `yaml:"retention"`
}

// Retention says after which age things are removed, with a unit, or never; what is not
// written is never removed, but for deliveries.
type Retention struct {
	Data       string `yaml:"data"`       // texts, conversations and events' data of tasks that ended
	Blobs      string `yaml:"blobs"`      // bundles of their patches, and their refs in the mirrors
	Deliveries string `yaml:"deliveries"` // bodies of webhooks; 30d when absent
}

// Telemetry is what traces carry; the environment says where they go.
type Telemetry struct {
	Content bool `yaml:"content" default:"false"` // texts of messages, too
}

// Server is where the dashboard and the API listen.
type Server struct {
	Listen    string `yaml:"listen" default:"127.0.0.1:8080"`
	PublicURL string `yaml:"public_url"`
	Timezone  string `yaml:"timezone" default:"UTC"`
}

// Engine are the engine's limits.
type Engine struct {
	Workers     int    `yaml:"workers" default:"8" range:"1 10000"`
	Lease       string `yaml:"lease" default:"30s" as:"time"`
	AckTimeout  string `yaml:"ack_timeout" default:"2m" as:"time"`
	MaxAttempts int    `yaml:"max_attempts" default:"3" range:"1 100"`
	MaxDepth    int    `yaml:"max_depth" range:"1 100"`
	MaxHandoffs *int   `yaml:"max_handoffs" default:"5"`
	// With opt_in a task must enable them.
	Handoffs  string                `yaml:"handoffs" default:"on" words:"on opt_in"`
	Cycle     string                `yaml:"cycle" default:"strict" words:"strict bounded"`
	Capacity  string                `yaml:"capacity" default:"queue" words:"queue refuse"`
	CheckTime string                `yaml:"check_timeout" default:"10m" as:"time"`
	Budget    *Allowance            `yaml:"budget"`
	Tiers     map[string]*Allowance `yaml:"tiers"` // by complexity (H19–H21)
	// With auto, tasks that name none are classified (H24).
	Complexity string  `yaml:"complexity" default:"off" words:"auto off"`
	Breaker    Breaker `yaml:"breaker"`
	MaxRemote  *int    `yaml:"max_remote_hops" default:"3" range:"0 1000000"`
	Loop       Loop    `yaml:"loop"`
	AtDepth    string  `yaml:"at_depth" default:"error" words:"error hide"`
	Spawn      Spawn   `yaml:"spawn"`
	Asks       Asks    `yaml:"asks"`
	KillAfter  string  `yaml:"kill_after" default:"10s" as:"time"`
	// What nobody takes up in time fails; "" off.
	QueueTime string `yaml:"queue_timeout" as:"time"`
	// Queued work of one agent that counts as full; shown, not enforced.
	Inbox int `yaml:"inbox" default:"50" range:"1 1000000"`
	// What a day should cost; shown, not enforced.
	DailyUSD float64 `yaml:"daily_usd"`
	// RecordEnds writes each delegation's end into the shared context; true when absent.
	RecordEnds *bool `yaml:"record_delegations" default:"true"`
	// AgentDefaults confine agents that do not say otherwise; their limits hold for checks, too.
	AgentDefaults AgentDefaults `yaml:"agent_defaults"`
}

// Spawn bounds the children that an agent does not wait for (P45).
type Spawn struct {
	Children int `yaml:"children" default:"5" range:"1 1000"` // live ones of one parent
	// Live ones of one agent over all its runs; 0: no limit of its own.
	PerAgent int    `yaml:"per_agent" range:"1 100000"`
	Timeout  string `yaml:"timeout" default:"5m" as:"time"` // of running, of one child
	// How long after its end a child answers for the same spawn.
	Remember string `yaml:"remember" default:"24h" as:"time"`
}

// Asks bounds how often agents ask people: about calls of tools, and questions.
type Asks struct {
	PerRun      int `yaml:"per_run" default:"100" range:"1 100000"`     // by one run; one more ends it as a loop
	OpenPerTask int `yaml:"open_per_task" default:"20" range:"1 10000"` // at once by one task
	PerMinute   int `yaml:"per_minute" default:"60" range:"1 100000"`   // by one run
}

// Breaker says when an agent rests (H11).
type Breaker struct {
	Failures *int   `yaml:"failures" default:"3" range:"0 1000000"` // 0: never
	Cooldown string `yaml:"cooldown" default:"1m" as:"time"`
}

// Repository is where patches land.
type Repository struct {
	Path       string   `yaml:"path"`
	Branch     string   `yaml:"branch"`
	Deliver    string   `yaml:"deliver" default:"merge" offers:"merge branch"`
	Checks     []string `yaml:"checks"`
	Protect    []string `yaml:"protect"`
	Credential string   `yaml:"credential"`
	Approvers  []string `yaml:"approvers"`
	Commit     *Commit  `yaml:"commit"`
}

// Commit is who commits what lands.
type Commit struct {
	Name  string `yaml:"name"`
	Email string `yaml:"email"`
}

// Agent is one agent of the team.
type Agent struct {
	Kind          string            `yaml:"kind"`
	Role          string            `yaml:"role" words:"admin developer specialist cli"`
	Capabilities  []string          `yaml:"capabilities"`
	DelegatesTo   *[]string         `yaml:"delegates_to"`
	Repository    string            `yaml:"repository"`
	Writes        []string          `yaml:"writes"`
	AnalysisOnly  bool              `yaml:"analysis_only"`
	AskFirst      bool              `yaml:"ask_first"`
	TrustCheckout bool              `yaml:"trust_checkout"` // it runs in its caller's files as they are
	Approval      string            `yaml:"approval" default:"any"`
	Owner         string            `yaml:"owner"`
	Timeout       string            `yaml:"timeout" default:"15m" as:"time"`
	Reads         *[]string         `yaml:"reads"`
	Prompt        string            `yaml:"prompt"`
	Output        map[string]any    `yaml:"output"` // a JSON Schema for the data of its answers
	Command       []string          `yaml:"command"`
	Protocol      string            `yaml:"protocol" offers:"plain jsonl acp"`
	Sandbox       string            `yaml:"sandbox" offers:"auto required off"`
	Writable      []string          `yaml:"writable"`
	Env           map[string]string `yaml:"env"`
	OutputLimit   int64             `yaml:"output_limit"`
	Network       string            `yaml:"network" words:"open off"`
	Limits        RunLimits         `yaml:"limits"`
	Steps         []Step            `yaml:"steps"`
	Model         string            `yaml:"model"`
	Fallbacks     []string          `yaml:"fallbacks"`
	Tools         Tools             `yaml:"tools"`
	MCP           []MCPServer       `yaml:"mcp"`
	MaxTurns      int               `yaml:"max_turns" range:"1 10000"`
	MaxTokens     int64             `yaml:"max_tokens" range:"1 10000000"`
	Budget        *Allowance        `yaml:"budget"`
	URL           string            `yaml:"url"`
	Token         string            `yaml:"token"`
	Card          string            `yaml:"card"`
}

// Tools is what a model may call.
type Tools struct {
	Allow *[]string `yaml:"allow"`
	Deny  []string  `yaml:"deny"`
}

// Step is one step of a workflow.
type Step struct {
	ID       string `yaml:"id"`
	Agent    string `yaml:"agent"`
	Task     string `yaml:"task"`
	If       string `yaml:"if"`
	Goto     string `yaml:"goto"`
	Limit    int    `yaml:"limit"`
	Produces string `yaml:"produces"`
	Parallel []Step `yaml:"parallel"`
}

// Approval is who must say yes to what.
type Approval struct {
	FourEyes *bool             `yaml:"four_eyes" default:"true"`
	Expires  string            `yaml:"expires" default:"72h" as:"time"`
	Remind   []string          `yaml:"remind"`
	Careful  []string          `yaml:"careful" words:"no_checks no_sandbox need_two"`
	Escalate []Escalation      `yaml:"escalate"`
	Rules    []wire.PolicyRule `yaml:"rules"`
	// Handovers say before which hand-overs people are asked (H18).
	Handovers []HandoverRule `yaml:"handovers"`
	OnNo      string         `yaml:"on_no" offers:"tell end"`
	// Actions say before which calls of tools people are asked; without one nobody is.
	Actions []wire.PolicyRule `yaml:"actions"`
}

// Escalation lets further groups decide once a request has waited.
type Escalation struct {
	After string   `yaml:"after"`
	To    []string `yaml:"to"`
}

// HandoverRule is one rule about hand-overs.
type HandoverRule struct {
	Name    string   `yaml:"name"`
	When    string   `yaml:"when"`
	Need    *int     `yaml:"need"`
	From    []string `yaml:"from"`
	Deny    bool     `yaml:"deny"`
	Expires string   `yaml:"expires"`
	OnNo    string   `yaml:"on_no" offers:"tell end"`
}

// Context is the shared context.
type Context struct {
	// TTL is how long values stay whose write names no life span, by namespace; a name that
	// ends in * stands for all that begin so.
	TTL map[string]string `yaml:"ttl"`
}

// Trigger makes tasks from webhooks or at times.
type Trigger struct {
	Name       string     `yaml:"name"`
	Kind       string     `yaml:"kind" offers:"webhook schedule"`
	Agent      string     `yaml:"agent"`
	Capability string     `yaml:"capability"`
	Repository string     `yaml:"repository"`
	Ref        string     `yaml:"ref"`
	Task       string     `yaml:"task"`
	When       string     `yaml:"when"`
	Owner      string     `yaml:"owner"`
	Key        string     `yaml:"key"`
	Complexity string     `yaml:"complexity" words:"simple medium complex auto"`
	Handoffs   bool       `yaml:"handoffs"` // under engine.handoffs: opt_in
	Budget     *Allowance `yaml:"budget"`
	Source     string     `yaml:"source" offers:"github gitlab standard hmac"`
	Secret     string     `yaml:"secret"`
	Secrets    []string   `yaml:"secrets"` // all of them are taken, while one takes another's place
	Header     string     `yaml:"header"`
	Encoding   string     `yaml:"encoding" offers:"hex base64"`
	Prefix     string     `yaml:"prefix"`
	Window     string     `yaml:"window"`
	Rate       *int       `yaml:"rate"` // calls a minute
	Cron       string     `yaml:"cron"`
	Timezone   string     `yaml:"timezone"`
	Overlap    string     `yaml:"overlap" offers:"skip queue allow"`
	Missed     string     `yaml:"missed" offers:"skip run"`
}
