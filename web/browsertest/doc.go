// Package browsertest lets tests use Gatehouse as people do: in a real Chromium, by the names that a screen reader
// would say.
//
//	page := browsertest.New(t).Page().Phone().Dark()
//	page.Open(server.URL + "/approvals")
//	page.Click("link", "Modernise the loops")
//	page.Fill("Comment", "Fine with me")
//	page.Click("button", "Approve")
//	page.WaitText("Landed as")
//	page.Shot("approved")
//
// Every call waits for what it needs, up to [Patience], and ends the test with what the page showed instead when that
// never comes. A test fails too when its pages reported errors or blocked something by their content security policy,
// unless it said beforehand, with [Page.Expect], that it provokes one.
//
// All tests of a package share one Chromium; each page has cookies and a cache of its own. Full-page screenshots are
// taken where GATEHOUSE_SHOTS names a folder for them. Where Chromium is not installed a test is skipped, and fails
// when GATEHOUSE_TEST_ALL is 1.
//
// May import: the standard library, chromedp and cdproto. Only tests import it.
package browsertest
