package view

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// TokenFile is the file with the token of the page, in the state directory.
const TokenFile = "view.token"

// tokenFile is the token of a lab's page. It is read for each request, so that a new
// token counts at once.
type tokenFile struct{ dir string }

// ensure returns the token. It makes one where there is none.
func (f tokenFile) ensure() (string, error) {
	t, err := f.read()
	if errors.Is(err, fs.ErrNotExist) {
		return Rotate(f.dir)
	}
	return t, err
}

func (f tokenFile) read() (string, error) {
	b, err := os.ReadFile(filepath.Join(f.dir, TokenFile))
	if err != nil {
		return "", err
	}
	t := strings.TrimSpace(string(b))
	if len(t) < len(rand.Text()) { // a token that was cut short is easier to guess
		return "", fmt.Errorf("%s holds no whole token: remove the file, or make a new token with labctl view --rotate", filepath.Join(f.dir, TokenFile))
	}
	return t, nil
}

// Rotate makes a new token for the lab in a directory. Pages that were opened with the
// old one end.
func Rotate(dir string) (string, error) {
	t := rand.Text()
	name := filepath.Join(dir, TokenFile)
	if err := os.WriteFile(name+".new", []byte(t+"\n"), 0o600); err != nil {
		return "", err
	}
	if err := os.Rename(name+".new", name); err != nil {
		return "", err
	}
	return t, nil
}

// Link returns the link of the page at a URL, with the token of the lab in a directory; ""
// when the lab has none.
func Link(page, dir string) string {
	token, err := tokenFile{dir}.read()
	if err != nil {
		return ""
	}
	return page + "/login?token=" + url.QueryEscape(token)
}

// cookieValue returns the value of the cookie that a token is exchanged for. The token
// itself stays out of the browser's store.
func cookieValue(token string) string {
	m := hmac.New(sha256.New, []byte(token))
	m.Write([]byte("cookie of the page"))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// cookieName returns the name of the cookie for a Host header. Browsers do not keep the
// cookies of two ports of one address apart.
func cookieName(host string) string {
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		port = "80"
	}
	return "metalab-view-" + port
}

// same compares two secrets in constant time.
func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// access lets requests in that have the token, or the cookie that it is exchanged for.
type access struct {
	token func() (string, error)
	log   *slog.Logger
}

// login exchanges the token of a link for a cookie.
func (a access) login(w http.ResponseWriter, r *http.Request) {
	token, err := a.token()
	if err != nil {
		a.log.Warn("no login to the page", "err", err)
		http.Error(w, "the lab has no token for its page", http.StatusInternalServerError)
		return
	}
	if !same(r.URL.Query().Get("token"), token) {
		unauthorized(w)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName(r.Host), Value: cookieValue(token), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, "/", http.StatusSeeOther) // browsers add the fragment of the link
}

func unauthorized(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="metalab"`)
	http.Error(w, "This page needs the lab's token: open the link that labctl view prints.", http.StatusUnauthorized)
}

// admits reports whether a request has the cookie of the page, or its token.
func (a access) admits(r *http.Request) bool {
	token, err := a.token()
	if err != nil {
		return false
	}
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return same(bearer, token)
	}
	c, err := r.Cookie(cookieName(r.Host))
	return err == nil && same(c.Value, cookieValue(token))
}

// authenticated answers 401 to requests without the cookie or the token.
func (a access) authenticated(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !a.admits(r) {
			unauthorized(w)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// handler returns the handler of a page: inside for requests with a valid cookie, and the login for all.
func (a access) handler(inside, outside *http.ServeMux) http.Handler {
	outside.HandleFunc("GET /login", a.login)
	outside.Handle("/", a.authenticated(inside))
	return guarded(outside)
}

// policy lets the page load from this server alone, without scripts and styles in HTML.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

// guarded refuses requests that another site's page may have caused.
func guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Content-Security-Policy", policy)
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Referrer-Policy", "no-referrer")
		head.Set("Cross-Origin-Opener-Policy", "same-origin")
		head.Set("Cross-Origin-Resource-Policy", "same-origin")
		head.Set("Cache-Control", "no-store")
		switch {
		case !thisComputer(r.Host):
			http.Error(w, fmt.Sprintf("host %q is not an address of this computer: use localhost or 127.0.0.1", r.Host), http.StatusForbidden)
		case !fromThisPage(r):
			http.Error(w, "a page of another origin has sent this request", http.StatusForbidden)
		default:
			h.ServeHTTP(w, r)
		}
	})
}

// thisComputer reports whether a Host header names this computer. A name that somebody
// else's DNS resolves to 127.0.0.1 does not.
func thisComputer(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	at, err := netip.ParseAddr(name)
	return err == nil && at.IsLoopback()
}

// fromThisPage reports whether a request comes from the page, a link or a program, and
// not from a page of another origin (Fetch Metadata; RFC 6454).
func fromThisPage(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" || u.Host != r.Host {
			return false
		}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return true
	}
	// A link elsewhere leads to the page.
	return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}
