package main

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	"gatehouse/cmd/gatehouse/internal/config"
	"gatehouse/cmd/gatehouse/internal/console"

	"github.com/alecthomas/kong"
)

// examples are the first two lines of each command's help. Those that link an account read alike for every channel.
func examples() map[string][2]string {
	all := maps.Clone(written)
	for _, channel := range config.BotNames() {
		all["link "+channel] = [2]string{"gatehouse link " + channel + " ann", "gatehouse link " + channel + " ann --json"}
	}
	return all
}

// written are the examples of single commands.
var written = map[string][2]string{
	"":                    {`gatehouse demo`, `gatehouse send kik "Fix the retry loop" --repo app --wait`},
	"demo":                {`gatehouse demo`, `gatehouse demo --repo ~/src/app --once`},
	"serve":               {`gatehouse serve`, `gatehouse serve --config /etc/gatehouse.yaml`},
	"send":                {`gatehouse send kik "Fix the retry loop" --repo app`, `gatehouse send --follow 7f3k9q "Now as in the picture" --attach shot.png`},
	"status":              {`gatehouse status 7f3k9q`, `gatehouse status 7f3k9q --json`},
	"list":                {`gatehouse list --state running`, `gatehouse list --agent coder --query retry --limit 20`},
	"tree":                {`gatehouse tree 7f3k9q`, `gatehouse tree 7f3k9q --json`},
	"waits":               {`gatehouse waits`, `gatehouse waits 7f3k9q`},
	"wait":                {`gatehouse wait 7f3k9q`, `gatehouse wait 7f3k9q --timeout 2h && make deploy`},
	"watch":               {`gatehouse watch`, `gatehouse watch 7f3k9q --json`},
	"cancel":              {`gatehouse cancel 7f3k9q --reason "wrong branch"`, `gatehouse cancel --all --agent coder --reason "wrong branch"`},
	"retry":               {`gatehouse retry 7f3k9q`, `gatehouse retry 7f3k9q && gatehouse wait 7f3k9q`},
	"pause":               {`gatehouse pause 7f3k9q`, `gatehouse pause 7f3k9q --json`},
	"resume":              {`gatehouse resume 7f3k9q`, `gatehouse resume 7f3k9q && gatehouse wait 7f3k9q`},
	"tell":                {`gatehouse tell 7f3k9q "Keep the old name as an alias"`, `git diff | gatehouse tell 7f3k9q -`},
	"fork":                {`gatehouse fork 7f3k9q`, `gatehouse fork 7f3k9q --turn 4`},
	"permit":              {`gatehouse permit --tool Bash --input '{"command":"npm publish"}'`, `gatehouse permit --tool deploy --server ops --input '{"to":"prod"}' && ./deploy prod`},
	"ask":                 {`gatehouse ask "Which colour?" --choice red --choice blue`, `gatehouse ask --to maintainers "May the old endpoint go?"`},
	"mcp":                 {`gatehouse mcp permission`, `gatehouse mcp permission --help`},
	"mcp permission":      {`gatehouse mcp permission`, `claude -p --permission-prompt-tool mcp__gatehouse__approve --mcp-config '{"mcpServers":{"gatehouse":{"command":"gatehouse","args":["mcp","permission"]}}}' # gatehouse mcp permission`},
	"answer":              {`gatehouse answer apr_01m85apw blue`, `echo "Because of the deadline." | gatehouse answer 7f3kq2 -`},
	"grants":              {`gatehouse grants tsk_01m85apw`, `gatehouse grants --revoke gnt_01m85apw`},
	"delegate":            {`gatehouse delegate reviewer "Look at my changes"`, `echo "Look at my changes" | gatehouse delegate reviewer -`},
	"spawn":               {`gatehouse spawn tester "Run the slow tests"`, `echo "Run the slow tests" | gatehouse spawn tester -`},
	"children":            {`gatehouse children`, `gatehouse children --wait`},
	"handoff":             {`gatehouse handoff deployer "Deploy it" --context build=1.18.1`, `gatehouse handoff coder "Build the plan" --artifact ImplementationPlan=docs/plan.md`},
	"approvals":           {`gatehouse approvals`, `gatehouse approvals --state landed`},
	"review":              {`gatehouse review c81m2x`, `gatehouse review 7f3k9q --json`},
	"approve":             {`gatehouse approve c81m2x`, `gatehouse review c81m2x && gatehouse approve c81m2x --yes`},
	"reject":              {`gatehouse reject c81m2x --reason "Breaks resume"`, `gatehouse reject 7f3k9q --reason "Not now"`},
	"request-changes":     {`gatehouse request-changes c81m2x --comment "Add a test"`, `gatehouse request-changes 7f3k9q --comment "Name the constant"`},
	"revert":              {`gatehouse revert c81m2x`, `gatehouse revert 7f3k9q --json`},
	"agents":              {`gatehouse agents`, `gatehouse agents check kik coder`},
	"agents check":        {`gatehouse agents check kik coder`, `gatehouse agents check coder kik --json`},
	"context":             {`gatehouse context list research`, `gatehouse context set research key "a value" --ttl 24h`},
	"context get":         {`gatehouse context get research key`, `gatehouse context get research key --json`},
	"context touch":       {`gatehouse context touch research key`, `gatehouse context touch research key --ttl 30d`},
	"context history":     {`gatehouse context history research key`, `gatehouse context history research key --json`},
	"context namespaces":  {`gatehouse context namespaces`, `gatehouse context namespaces --json`},
	"context cleanup":     {`gatehouse context cleanup`, `gatehouse context cleanup --json`},
	"context set":         {`gatehouse context set research key "a value" --ttl 24h`, `gatehouse context set research key - < notes.txt`},
	"context list":        {`gatehouse context list research`, `gatehouse context list research --prefix api/`},
	"context delete":      {`gatehouse context delete research key`, `gatehouse context delete research key --json`},
	"audit":               {`gatehouse audit verify`, `gatehouse audit export > history.jsonl`},
	"audit verify":        {`gatehouse audit verify`, `gatehouse audit verify history.jsonl --key 4f1c09be77a2d310`},
	"audit key":           {`gatehouse audit key`, `gatehouse audit key --json`},
	"hold":                {`gatehouse hold set apr_…4m2k7z --reason "case 12"`, `gatehouse hold list`},
	"hold set":            {`gatehouse hold set tsk_…n7f3k8 --reason "case 12"`, `gatehouse hold set --repository app --reason "audit of 2026"`},
	"hold list":           {`gatehouse hold list`, `gatehouse hold list --lifted --json`},
	"hold lift":           {`gatehouse hold lift hld_… --reason "case 12 is closed"`, `gatehouse hold lift hld_… --reason settled --json`},
	"audit list":          {`gatehouse audit list approver:bob time:30d`, `gatehouse audit list --list events type:patch.landed`},
	"audit export":        {`gatehouse audit export apr_…4m2k7z > evidence.jsonl`, `gatehouse audit export --filter "four_eyes:no time:90d" --format csv > found.csv`},
	"triggers":            {`gatehouse triggers`, `gatehouse triggers show ci-failed`},
	"triggers show":       {`gatehouse triggers show ci-failed`, `gatehouse triggers show nightly --json`},
	"triggers deliveries": {`gatehouse triggers deliveries ci-failed`, `gatehouse triggers deliveries ci-failed --state refused --limit 20`},
	"triggers delivery":   {`gatehouse triggers delivery 7f3k9q`, `gatehouse triggers delivery 7f3k9q --json`},
	"triggers redeliver":  {`gatehouse triggers redeliver 7f3k9q`, `gatehouse triggers redeliver 7f3k9q --json`},
	"triggers test":       {`gatehouse triggers test ci-failed payload.json --event workflow_run`, `curl -s https://ci.example/last.json | gatehouse triggers test ci-failed -`},
	"user":                {`gatehouse user add ann --role admin --role approver`, `gatehouse user signin-link ann`},
	"user add":            {`gatehouse user add ann --role admin --role approver`, `gatehouse user add bob --role operator --password-stdin < secret`},
	"user list":           {`gatehouse user list`, `gatehouse user list --json`},
	"user roles":          {`gatehouse user roles ann --role admin --role operator`, `gatehouse user roles bob --role auditor`},
	"user disable":        {`gatehouse user disable bob`, `gatehouse user disable bob --json`},
	"user enable":         {`gatehouse user enable bob`, `gatehouse user enable bob --json`},
	"user away":           {`gatehouse user away ann --to cleo --until 2w`, `gatehouse user away ann --back`},
	"user signin-link":    {`gatehouse user signin-link ann`, `xdg-open "$(gatehouse user signin-link ann)"`},
	"link":                {`gatehouse link telegram ann`, `gatehouse link list`},
	"link list":           {`gatehouse link list`, `gatehouse link list --json`},
	"link remove":         {`gatehouse link remove telegram 123456789`, `gatehouse link remove telegram 123456789 --json`},
	"token":               {`gatehouse token create ann --scope tasks:write`, `gatehouse token list`},
	"token create":        {`gatehouse token create ann --scope tasks:write --scope delegations:read`, `gatehouse token create ann --scope audit:read --name nightly --expires 90d`},
	"token list":          {`gatehouse token list`, `gatehouse token list --json`},
	"token revoke":        {`gatehouse token revoke 4m2k7z`, `gatehouse token revoke 4m2k7z --json`},
	"policy":              {`gatehouse policy test`, `gatehouse policy test --since 90d`},
	"policy test":         {`gatehouse policy test --since 30d`, `gatehouse policy test --rules next.yaml --json`},
	"config":              {`gatehouse config check`, `gatehouse config schema > gatehouse.schema.json`},
	"config check":        {`gatehouse config check`, `gatehouse config check --config /etc/gatehouse.yaml`},
	"config show":         {`gatehouse config show`, `gatehouse config show --json`},
	"config schema":       {`gatehouse config schema`, `gatehouse config schema > gatehouse.schema.json`},
	"backup":              {`gatehouse backup gatehouse-copy.db`, `gatehouse backup /var/backups/gatehouse.dump --config /etc/gatehouse.yaml`},
	"migrate":             {`gatehouse migrate`, `gatehouse migrate --config /etc/gatehouse.yaml`},
	"reindex":             {`gatehouse reindex`, `gatehouse reindex --config /etc/gatehouse.yaml --json`},
	"doctor":              {`gatehouse doctor`, `gatehouse doctor --json`},
	"bench":               {`gatehouse bench`, `gatehouse bench --chains 1000 --database sqlite:./gatehouse.db --json`},
	"version":             {`gatehouse version`, `gatehouse version --json`},
	"licenses":            {`gatehouse licenses`, `gatehouse licenses | less`},
	"completion":          {`source <(gatehouse completion bash)`, `gatehouse completion fish > ~/.config/fish/completions/gatehouse.fish`},
}

// helpWithExamples prints two examples and then the parser's own help.
func helpWithExamples(options kong.HelpOptions, ctx *kong.Context) error {
	node := cmp.Or(ctx.Selected(), ctx.Model.Node)
	if two, ok := examples()[strings.TrimSpace(console.PathOf(node))]; ok {
		if _, err := fmt.Fprintf(ctx.Stdout, "  %s\n  %s\n\n", two[0], two[1]); err != nil {
			return err
		}
	}
	return kong.DefaultHelpPrinter(options, ctx)
}
