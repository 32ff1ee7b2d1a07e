package view_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// browser is a real browser with one page.
type browser struct {
	t   testing.TB
	ctx context.Context

	mu     sync.Mutex
	errors []string // in its console
}

// open opens the page of a lab in a new browser, with the lab's token. fragment is the
// link's. The test fails when the browser's console has an error.
func open(t testing.TB, p *page, fragment string, width, height int) *browser {
	t.Helper()
	return openURL(t, p.url+"/login?token="+p.token+fragment, width, height)
}

// openURL opens a page in a new browser.
func openURL(t testing.TB, link string, width, height int) *browser {
	t.Helper()
	opts := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(prerequisites.Need(t, "chromium")), chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(width, height),
	}
	for _, flag := range []string{
		"headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking", "disable-component-update",
		"disable-sync", "disable-extensions", "disable-default-apps", "no-default-browser-check", "mute-audio",
	} {
		opts = append(opts, chromedp.Flag(flag, true))
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Minute)
	alloc, stop := chromedp.NewExecAllocator(bounded, opts...)
	ctx, end := chromedp.NewContext(alloc)
	b := &browser{t: t, ctx: ctx}
	messages := chromedp.Console(ctx)
	var reading sync.WaitGroup
	reading.Go(func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			if m.Type == chromedp.ConsoleError || m.Type == chromedp.ConsoleException || m.Type == chromedp.ConsoleWarning {
				b.mu.Lock()
				b.errors = append(b.errors, m.String()+" "+m.URL)
				b.mu.Unlock()
			}
		}
	})
	t.Cleanup(func() {
		end()
		stop()
		cancel()
		reading.Wait()
		if len(b.errors) > 0 {
			t.Errorf("the browser's console has errors:\n%s", strings.Join(b.errors, "\n"))
		}
	})
	b.do("the page opens", chromedp.Navigate(link))
	b.wait("the page is live", `document.querySelector(".link")?.classList.contains("live")`)
	return b
}

// do performs actions.
func (b *browser) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatalf("%s: %v; %s", what, err, b.console())
	}
}

func (b *browser) console() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return "console: " + strings.Join(b.errors, "\n")
}

// evaluate evaluates an expression for its effect.
func evaluate(expression string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](expression)
}

// value returns the value of an expression.
func value[T any](b *browser, expression string) T {
	b.t.Helper()
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v; %s", expression, err, b.console())
	}
	return out
}

// wait returns when an expression is true. The page evaluates it in each frame.
func (b *browser) wait(what, expression string) {
	b.t.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.Poll[bool]("Boolean("+expression+")", chromedp.WithPollingTimeout(time.Minute))); err != nil {
		b.t.Fatalf("%s: %s did not become true: %v; %s; the page shows: %.3000s", what, expression, err, b.console(), value[string](b, "document.body.innerText"))
	}
}

// click clicks the first element of a selector that has a text.
func (b *browser) click(selector, text string) {
	b.t.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll(%q)].find((e) => e.textContent.includes(%q) && !e.disabled)", selector, text)
	b.wait("there is "+text, find)
	b.do("click "+text, chromedp.Evaluate[chromedp.Void](find+".click()"))
}

// fill sets the value of an input, as a user who types or chooses does.
func (b *browser) fill(selector, text string) {
	b.t.Helper()
	b.wait("there is "+selector, fmt.Sprintf("document.querySelector(%q)", selector))
	b.do("fill "+selector, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(
		"{ const e = document.querySelector(%q); e.value = %q; e.dispatchEvent(new Event('input', {bubbles: true})); e.dispatchEvent(new Event('change', {bubbles: true})); }", selector, text)))
}

// prefer emulates a preference of colours: dark or light.
func prefer(scheme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	})
}

// medium emulates a medium, such as print ("" is the screen), of a user who prefers dark.
func medium(name string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Media: name, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}},
		})
		return err
	})
}
