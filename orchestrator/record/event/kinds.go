package event

// Kind is what there is to know of a type of events. A new type is a constant with its
// struct and sentence, a line in this table, and who appends it.
type Kind struct {
	Type  Type
	Icon  string // one character
	empty Payload
	trait
}

type trait uint8

// What a Kind may be besides.
const (
	heard   trait = 1 << iota // of a task: open pages listen, and its list of events offers it
	acted                     // whoever acted stands beside it, and not the agent
	passing                   // shown and never stored
)

func kind[P Payload](icon string, t trait) Kind {
	var p P
	return Kind{Type: p.kind(), Icon: icon, empty: p, trait: t}
}

// The one table of all types.
var kinds = []Kind{
	kind[TaskCreatedData]("+", heard|acted),
	kind[QueuedData]("○", heard),
	kind[AcknowledgedData]("●", heard),
	kind[ProgressData]("·", heard),
	kind[DelegatedData]("→", heard),
	kind[DelegationRefusedData]("⊘", heard),
	kind[WaitingData]("⧗", heard),
	kind[ResumedData]("●", heard),
	kind[CompletedData]("✓", heard),
	kind[FailedData]("✕", heard),
	kind[CancelledData]("■", heard|acted),
	kind[MessageCompletedData]("·", heard),
	kind[ToolCompletedData]("·", heard),
	kind[PausedData]("‖", heard|acted),
	kind[UnpausedData]("●", heard|acted),
	kind[ForkedData]("⑂", heard|acted),
	kind[AnnouncedData]("↑", heard),
	kind[UsageRecordedData]("$", heard),
	kind[ContextReadData]("≡", heard),
	kind[ContextDeletedData]("≡", heard),
	kind[ContextWrittenData]("≡", heard),
	kind[RequestedData]("◆", heard),
	kind[NotifiedData]("◇", heard),
	kind[DecidedData]("✓", heard|acted),
	kind[ChangesRequestedData]("↩", heard|acted),
	kind[SupersededData]("⧉", heard),
	kind[ExpiredData]("⌛", heard),
	kind[StaleData]("⧉", heard),
	kind[RemindedData]("◇", heard),
	kind[EscalatedData]("◇", heard),
	kind[CommentRepliedData]("✎", heard),
	kind[CommentResolvedData]("✎", heard),
	kind[CommentReopenedData]("✎", heard),
	kind[VerdictRefusedData]("⊘", heard|acted),
	kind[WithdrawnRightData]("◆", heard),
	kind[OvertakenData]("⧉", heard),
	kind[PatchRejectedData]("⊘", heard),
	kind[PatchValidatedData]("✓", heard),
	kind[PatchLandedData]("✓", heard),
	kind[PatchRevertedData]("⧉", heard),
	kind[BreakerOpenedData]("⊘", heard),
	kind[BreakerClosedData]("○", heard),

	kind[UserCreatedData]("@", 0),
	kind[UserChangedData]("@", 0),
	kind[SessionCreatedData]("@", 0),
	kind[SessionEndedData]("@", 0),
	kind[LinkCreatedData]("@", 0),
	kind[LinkUsedData]("@", 0),
	kind[TokenCreatedData]("@", 0),
	kind[TokenRevokedData]("@", 0),
	kind[LinkCodeCreatedData]("@", 0),
	kind[AccountLinkedData]("@", 0),
	kind[AccountUnlinkedData]("@", 0),
	kind[ViewSharedData]("@", 0),
	kind[ViewUnsharedData]("@", 0),
	kind[ConfigurationChangedData]("⚙", 0),
	kind[ChannelHealthData]("⚙", 0),
	kind[ChannelRetriedData]("⚙", 0),
	kind[TriggerRefusedData]("⊘", 0),
	kind[TriggerNotStartedData]("⊘", 0),
	kind[TriggerRedeliveredData]("+", 0),
	kind[AuditExportedData]("#", 0),
	kind[HistoryVerifiedData]("#", 0),
	kind[HoldSetData]("#", 0),
	kind[HoldLiftedData]("#", 0),
	kind[RetentionAppliedData]("#", 0),

	kind[MessageDeltaData]("·", passing),
	kind[GapData]("…", passing|heard),
}

var byType = func() map[Type]Kind {
	m := make(map[Type]Kind, len(kinds))
	for _, k := range kinds {
		m[k.Type] = k
	}
	return m
}()

// KindOf looks a type up; false for one of another version of this program.
func KindOf(t Type) (Kind, bool) {
	k, ok := byType[t]
	return k, ok
}

// Types lists every type that the log of a task may have, as filters offer them.
func Types() []Type {
	var all []Type
	for _, k := range kinds {
		if k.trait&(heard|passing) == heard {
			all = append(all, k.Type)
		}
	}
	return all
}

// Stored lists every type that the log may have, as searches offer them.
func Stored() []Type {
	var all []Type
	for _, k := range kinds {
		if k.trait&passing == 0 {
			all = append(all, k.Type)
		}
	}
	return all
}

// Sentence is what an event says, beside its type and who did it.
func Sentence(e Event, w Words) string {
	if p := e.Payload(); p != nil {
		return p.sentence(e, w)
	}
	var d struct{ Message, Text, Title, Why, To, State string }
	Decode(e.Data, &d)
	return first(d.Message, d.Text, d.Title, d.Why, Prefixed("to ", d.To), d.State)
}

// Access is whose access an event of the stream "system" is about, by ids; "" and none where
// it says nothing of that.
func (e Event) Access() (userID string, tokenIDs []string) {
	var d struct {
		UserID        string   `json:"user_id"`
		TokenID       string   `json:"token_id"`
		TokensRevoked []string `json:"tokens_revoked"`
	}
	Decode(e.Data, &d)
	if d.TokenID != "" {
		d.TokensRevoked = append(d.TokensRevoked, d.TokenID)
	}
	return d.UserID, d.TokensRevoked
}

// Agent is the agent that the data names, "" for none.
func (e Event) Agent() string {
	var d struct{ Agent string }
	Decode(e.Data, &d)
	return d.Agent
}

// Turn is the turn of a model that e is about, 0 for none.
func (e Event) Turn() int {
	var d struct{ Turn int }
	Decode(e.Data, &d)
	return d.Turn
}

// ApprovalID is the request that e is about, "" for none.
func (e Event) ApprovalID() string {
	var d About
	Decode(e.Data, &d)
	return d.ApprovalID
}

// Code is why something was refused or has failed; "" where e says nothing of the kind.
func (e Event) Code() string {
	switch e.Type {
	case DelegationRefused:
		return Read[DelegationRefusedData](e).Code
	case PatchRejected:
		return Read[PatchRejectedData](e).Code
	case Failed, Cancelled:
		return EndOf(e).Code.V
	}
	return ""
}

// VerdictOf is what was said in a Decided or ChangesRequested.
func VerdictOf(e Event) (v Verdict, startOver bool) {
	switch d := e.Payload().(type) {
	case DecidedData:
		return d.Verdict, false
	case ChangesRequestedData:
		return d.Verdict, d.StartOver
	}
	return Verdict{}, false
}

// EndOf is the end that a Completed, Failed or Cancelled tells.
func EndOf(e Event) End {
	switch d := e.Payload().(type) {
	case CompletedData:
		return d.End
	case FailedData:
		return d.End
	case CancelledData:
		return d.End
	}
	return End{}
}

// ByActor reports whether the person or rule that acted stands beside the event.
func (t Type) ByActor() bool { return byType[t].trait&acted != 0 }

// Ends reports whether a delegation has ended with this.
func (t Type) Ends() bool { return t == Completed || t == Failed || t == Cancelled }

// Heard reports whether open pages renew what shows it. Of what they do not know they do.
func (t Type) Heard() bool {
	k, known := byType[t]
	return !known || k.trait&heard != 0
}
