package view_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/scenarios/view"
)

// everything are the requests that need the token.
var everything = [][2]string{
	{"GET", "/"}, {"GET", "/events"}, {"GET", "/events?host=node-0&console=1"}, {"GET", "/rack.svg"}, {"GET", "/assets/app.mjs"}, {"GET", "/hosts/node-0/objects"}, {"GET", "/hosts/node-0/contents"},
	{"POST", "/hosts/node-0/console"}, {"POST", "/hosts/node-0/actions/power"}, {"GET", "/nothing"},
}

func TestRequestsWithoutTokenReturn401(t *testing.T) {
	p := start(t, rackfile.Default(1), nil)
	for _, r := range everything {
		for name, header := range map[string][]string{
			"none": nil, "a wrong token": {"Authorization", "Bearer " + strings.ToLower(p.token)}, "an empty token": {"Authorization", "Bearer "},
			"the token as cookie": {"Cookie", cookieOf(p.url) + "=" + p.token},
		} {
			if resp, _ := p.do(t, r[0], r[1], "{}", header...); resp.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s %s with %s = %d, want 401", r[0], r[1], name, resp.StatusCode)
			}
		}
	}
	if got := p.First().Machine().Power; got != "Off" {
		t.Errorf("power = %s, want Off", got)
	}
}

// cookieOf returns the name of the cookie of a page.
func cookieOf(url string) string { return "metalab-view-" + url[strings.LastIndex(url, ":")+1:] }

func TestLoginExchangesTheTokenForACookie(t *testing.T) {
	p := start(t, rackfile.Default(1), nil)
	if resp, _ := p.do(t, "GET", "/login?token=wrong", ""); resp.StatusCode != http.StatusUnauthorized || len(resp.Cookies()) > 0 {
		t.Errorf("login with a wrong token = %d with %d cookies, want 401 with none", resp.StatusCode, len(resp.Cookies()))
	}
	resp, _ := p.do(t, "GET", "/login?token="+p.token, "")
	cookies := resp.Cookies()
	if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "/" || len(cookies) != 1 {
		t.Fatalf("login = %d to %q with %d cookies, want 303 to / with 1", resp.StatusCode, resp.Header.Get("Location"), len(cookies))
	}
	c := cookies[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Value == p.token || c.Name != cookieOf(p.url) {
		t.Errorf("cookie = %s, want %s, HttpOnly and SameSite=Strict, without the token", c, cookieOf(p.url))
	}
	resp, body := p.do(t, "GET", "/", "", "Cookie", c.Name+"="+c.Value)
	if resp.StatusCode != http.StatusOK || strings.Contains(body, p.token) {
		t.Errorf("page with the cookie = %d, want 200 without the token", resp.StatusCode)
	}
	for header, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
	} {
		if got := resp.Header.Get(header); !strings.HasPrefix(got, want) {
			t.Errorf("%s = %q, want %q", header, got, want)
		}
	}
	if strings.Contains(resp.Header.Get("Content-Security-Policy"), "unsafe") {
		t.Error("the policy allows scripts or styles in HTML")
	}
}

func TestRotateEndsOldCookies(t *testing.T) {
	p := start(t, rackfile.Default(1), nil)
	resp, _ := p.do(t, "GET", "/login?token="+p.token, "")
	cookie := []string{"Cookie", resp.Cookies()[0].Name + "=" + resp.Cookies()[0].Value}
	st, err := os.Stat(filepath.Join(p.Dir(), view.TokenFile))
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode of the token = %v, %v, want 0600", st.Mode(), err)
	}
	renewed, err := view.Rotate(p.Dir())
	if err != nil || renewed == p.token {
		t.Fatalf("Rotate() = %q, %v, want a new token", renewed, err)
	}
	if resp, _ := p.do(t, "GET", "/", "", cookie...); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("old cookie after Rotate = %d, want 401", resp.StatusCode)
	}
	if resp, _ := p.do(t, "GET", "/", "", "Authorization", "Bearer "+renewed); resp.StatusCode != http.StatusOK {
		t.Errorf("new token = %d, want 200", resp.StatusCode)
	}
}

func TestPagesOfOtherOriginsAreRefused(t *testing.T) {
	p := start(t, rackfile.Default(1), nil)
	port := p.url[strings.LastIndex(p.url, ":"):]
	for _, tt := range []struct {
		name   string
		method string
		header []string
		want   int
	}{
		{"another host name", "GET", []string{"Host", "evil.example" + port}, 403},
		{"a name that only begins so", "GET", []string{"Host", "localhost.evil.example" + port}, 403},
		{"an address elsewhere", "GET", []string{"Host", "192.0.2.1" + port}, 403},
		{"no host", "GET", []string{"Host", ""}, 200}, // the client sends that of the URL
		{"localhost", "GET", []string{"Host", "localhost" + port}, 200},
		{"another loopback address", "GET", []string{"Host", "[::1]:9"}, 200}, // a tunnel of ssh
		{"another origin", "POST", []string{"Origin", "http://evil.example"}, 403},
		{"another port", "POST", []string{"Origin", "http://127.0.0.1:1"}, 403},
		{"another scheme", "POST", []string{"Origin", strings.Replace(p.url, "http:", "https:", 1)}, 403},
		{"a sandboxed frame", "POST", []string{"Origin", "null"}, 403},
		{"this origin", "POST", []string{"Origin", p.url, "Sec-Fetch-Site", "same-origin"}, 204},
		{"a page of another site", "POST", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"a page of another port", "GET", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors"}, 403},
		{"an image elsewhere", "GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}, 403},
		{"a frame elsewhere", "GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 403},
		{"a link elsewhere", "GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 200},
	} {
		path, body := "/", ""
		if tt.method == "POST" {
			path, body = "/hosts/node-0/console", "x"
			if p.First().Machine().Power == "Off" {
				path, body = "/hosts/node-0/actions/boot", `{"target":"Pxe"}`
			}
		}
		if resp, text := p.do(t, tt.method, path, body, append(p.bearer(), tt.header...)...); resp.StatusCode != tt.want {
			t.Errorf("%s: %s = %d %.100s, want %d", tt.name, tt.method, resp.StatusCode, text, tt.want)
		}
	}
}
