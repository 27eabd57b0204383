package browsertest

import (
	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
)

// Notices answers, in the person's place, whether pages may show notices: it is what they press
// in the window that the browser asks with.
func (p *Page) Notices(allowed bool) *Page {
	p.browser.t.Helper()
	setting := browser.PermissionSettingDenied
	if allowed {
		setting = browser.PermissionSettingGranted
	}
	_, err := chromedp.CallBrowser(p.soon(), browser.SetPermission, browser.SetPermissionParams{
		Permission: &browser.PermissionDescriptor{Name: "notifications"}, Setting: setting,
		BrowserContextID: chromedp.FromContext(p.ctx).BrowserContextID})
	p.must("answer whether notices may be shown", err)
	return p
}
