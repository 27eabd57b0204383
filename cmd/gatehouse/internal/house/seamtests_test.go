package house

import "testing"

// The tests with real rooms on both sides, by folder and name.
const (
	programsHand = "cmd/gatehouse TestAProgramGivesItsWorkAway"
	modelsHand   = "cmd/gatehouse TestAModelHandsOverToAModel"
	results      = "cmd/gatehouse TestWhatAgentsBringReachesEveryCaller"
	refused      = "cmd/gatehouse TestRefusalsOfModels"
	goesOn       = "cmd/gatehouse TestAfterRequestChangesTheWorkGoesOn"
	inquiry      = "cmd/gatehouse TestAnAdminAsksADeveloperWhichVersionRuns"
	team         = "cmd/gatehouse TestATeamOfModels"
	killedTurns  = "cmd/gatehouse TestAServerKilledAtEveryTurn"
	elsewhere    = "cmd/gatehouse TestHopsBetweenSystems"
	killedThere  = "cmd/gatehouse TestAnAgentElsewhereSurvivesAKilledServer"
	pushed       = "cmd/gatehouse TestABranchThatWasPushedIsNotCalledLanded"
	confined     = "cmd/gatehouse TestARunOverItsLimitsSaysWhichOne"
	someFiles    = "orchestrator TestSomeFilesAreApprovedAndExactlyThoseLand"
	patchText    = "orchestrator TestAPatchAsText"
	board        = "orchestrator TestTheBoardIsTheTasks"
	calls        = "orchestrator TestACallIsCheckedAgainstTheWholeLine"
	spawned      = "orchestrator TestSpawnedChildrenAreToldInTheOrderOfTheirEnds"
	typed        = "orchestrator TestWhatAModelBelowWritesPassesByItsTask"
	again        = "orchestrator TestRequestedChangesRunTheAgentAgain"
	shared       = "orchestrator TestWhatOneAgentWritesByToolIsInTheNextOnesSnapshot"
	routed       = "orchestrator TestASpawnKeepsTheAllowList"
	fellBack     = "cmd/gatehouse TestAProgramWhoseHandoverFailedWorksByItself"
	resumed      = "orchestrator TestAProgramsSessionIsKept"
	attached     = "cmd/gatehouse TestAgentsAreGivenTheFilesOfATask"
	oneGoesOn    = "orchestrator TestTheContextOfAHopIsTheTasksOwn"
)

// seamTests says for each fact that crosses a border which test notices when it is dropped.
var seamTests = map[string]string{
	"Job.TaskID": "orchestrator/record/telemetry TestATaskIsATrace", "Job.DelegationID": killedThere, "Job.Attempt": "orchestrator TestALostLeaseIsClaimedAgainAndTheThirdLossIsTheEnd", "Job.Agent": team, "Job.From": typed,
	"Job.Text": programsHand, "Job.Feedback": again, "Job.Dir": results, "Job.ScratchDir": programsHand, "Job.Token": results, "Job.URL": results,
	"Job.Context": shared, "Job.Memo": "orchestrator TestAConversationParksWithItsFiles", "Job.Children": results, "Job.Turns": killedTurns, "Job.Carried": goesOn, "Job.Next": "orchestrator TestAThreadRemembers",
	"Job.Revision": goesOn, "Job.Handover": programsHand, "Job.Channel": board, "Job.Chat": board, "Job.Board": board, "Job.Generation": killedThere, "Job.RemoteHops": elsewhere,
	"Job.Source": "orchestrator TestTheSourceOfATaskTravels", "Job.Fallback": fellBack, "Job.Session": resumed, "Job.Told": "orchestrator TestAProgramHearsWhatPeopleSay", "Job.Attachments": attached, "Job.AttachmentsDir": attached,

	"Hop.Ref": killedTurns, "Hop.To": results, "Hop.Capability": routed, "Hop.Text": results, "Hop.Context": oneGoesOn, "Hop.Handover": modelsHand, "Hop.Spawn": spawned, "Hop.Again": "orchestrator TestASpawnIsRememberedForAWhile",
	"Hop.Budget": "orchestrator TestFiftyHopsAtTheSameMoment", "Hop.Round": results, "Hop.Final": programsHand,

	"Child.ID": inquiry, "Child.Ref": results, "Child.To": inquiry, "Child.Text": "orchestrator TestAModelSpawnsHundreds", "Child.State": refused, "Child.Ended": results, "Child.Spawn": inquiry,
	"Child.Usage": results, "Child.Result": results, "Child.Error": refused,

	"Result.Text": results, "Result.Data": results, "Result.Artifacts": results, "Result.Patch": patchText, "Result.Commit": pushed, "Result.Pushed": pushed, "Result.Declined": someFiles,

	"Handover.Goto": modelsHand, "Handover.Graph": modelsHand, "Handover.Update": programsHand,

	"Work.Anew": "cmd/gatehouse TestWorkThatRunsAgainIsGivenUpInItsQueue", "Session.Fallback": fellBack, "Product.Discarded": "orchestrator TestWhatIsDiscardedIsSaid",

	"Host.Progress": killedThere, "Host.Usage": results, "Host.PutContext": board, "Host.Delegate": results, "Host.Await": results, "Host.Sandbox": confined,
	"Host.Confined": confined, "Host.SaveTurn": killedTurns, "Host.Delta": typed, "Host.Ended": inquiry, "Host.Roster": team, "Host.Shared": board,
	"Host.Checks": "orchestrator TestRandomModels", "Host.Apply": "orchestrator TestRandomModels", "Host.Reserve": calls, "Host.Remaining": calls, "Host.Over": killedThere,
	"Host.Ask": "cmd/gatehouse TestACallIsApprovedFromTheCommandLine", "Host.Consult": "cmd/gatehouse TestAnAnalysisHasNoToolThatChangesAnything", "Host.Proceed": "orchestrator/agent/llm TestACallThatPeopleAreAskedAbout",
	"Host.Report": "orchestrator TestWhatAProgramReportsIsStored", "Host.KeepSession": resumed,
	"Host.Unread": "orchestrator TestATurnCarriesWhatPeopleSaid", "Host.Hear": "orchestrator TestAProgramHearsWhatPeopleSay",
}

// TestEverySeamHasItsTest: whoever adds a field or a method names the test that notices
// when it is dropped, and the test is there.
func TestEverySeamHasItsTest(t *testing.T) {
	root, known := moduleRoot(t), map[string]bool{}
	found := map[string]bool{}
	u := seams(t, loadModule(t))
	for _, f := range facings {
		for _, name := range u.members(f) {
			key := f.key() + "." + name
			found[key] = true
			if f.pkg == agentPath && seamTests[key] == "" {
				t.Errorf("%s: no test is named that notices when it is dropped", key)
			}
		}
	}
	for key, said := range seamTests {
		if !found[key] {
			t.Errorf("%s is not there any more", key)
		}
		if err := shows(root, said, known); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
}
