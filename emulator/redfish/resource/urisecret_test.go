package resource

import (
	"strings"
	"testing"
)

func TestURISecretsAreHiddenInText(t *testing.T) {
	for in, want := range map[string]string{
		"":                          "",
		"no URI":                    "no URI",
		"a? b=c":                    "a? b=c",
		"who@host":                  "who@host",
		"http://h/boot/b/agent.iso": "http://h/boot/b/agent.iso",
		"http://h/boot/b/agent.iso?token=abc&filename=agent.iso":   "http://h/boot/b/agent.iso?...",
		"https://user:pass@h:8443/x.iso":                           "https://...@h:8443/x.iso",
		"https://user@h/x":                                         "https://...@h/x",
		"https://u:p@[2001:db8::1]/x?a":                            "https://...@[2001:db8::1]/x?...",
		"u:p@h":                                                    "u:...@h",
		"nfs://u:p@h/x":                                            "nfs://...@h/x",
		"http://h?token=abc":                                       "http://h?...",
		"http://h/x?abc#part":                                      "http://h/x?...",
		"http://h/a@b/c":                                           "http://h/a@b/c",
		"/boot/b/agent.iso?token=abc":                              "/boot/b/agent.iso?...",
		"agent.iso?token=abc&x=y":                                  "agent.iso?...",
		"/redfish/v1/Systems?$skip=2&$top=1":                       "/redfish/v1/Systems?$skip=2&$top=1",
		"GET http://h/x?token=abc failed, http://u:p@i/ too.":      "GET http://h/x?... failed, http://...@i/ too.",
		`{"Image":"http://h/x?token=abc&b=c","Other":"d"}`:         `{"Image":"http://h/x?...","Other":"d"}`,
		`{"Image":"http:\/\/u:p@h\/x?token=abc\u0026b=c","d":"e"}`: `{"Image":"http:\/\/...@h\/x?...","d":"e"}`,
		"<URL>http://u:p@h/x?a=b&amp;c=d</URL>":                    "<URL>http://...@h/x?...</URL>",
		"http://h/x?... is hidden already":                         "http://h/x?... is hidden already",
	} {
		got := HideURISecrets(in)
		if got != want {
			t.Errorf("HideURISecrets(%q) = %q, want %q", in, got, want)
		}
		if again := HideURISecrets(got); again != got {
			t.Errorf("HideURISecrets(%q) = %q, want it unchanged", got, again)
		}
	}
}

func TestURISecretsAreHiddenInABody(t *testing.T) {
	body := []byte(`{"@odata.etag":"\"1\"","A":[{"B":"http://h/x?t=s3cret"},"http://u:s3cret@h/",1.50,null],"C":"{\"D\":\"http://h/x?t=s3cret\\u0026y\"}"}`)
	got := string(HideURISecretsInBody(body))
	if want := `{"@odata.etag":"\"1\"","A":[{"B":"http://h/x?..."},"http://...@h/",1.50,null],"C":"{\"D\":\"http://h/x?...\"}"}`; got != want {
		t.Errorf("body %s, want %s", got, want)
	}
	plain := []byte(`{"@odata.id":"/redfish/v1","A":"http://h/x","B":"a@b"}`)
	if got := HideURISecretsInBody(plain); &got[0] != &plain[0] {
		t.Errorf("body %s was made anew", got)
	}
}

func FuzzHideURISecrets(f *testing.F) {
	for _, x := range []string{"http://h/x", "https://h:1/a/b.iso", "nfs://[::1]/x"} {
		f.Add(x, "token")
	}
	f.Fuzz(func(t *testing.T, uri, name string) {
		if !isMediaURI(uri) || strings.ContainsAny(uri, "?#@") || strings.Contains(uri, "s3cret") {
			return
		}
		for _, c := range uri + name {
			if c <= ' ' || c > '~' || strings.ContainsRune(`"'<>\`+"`{}|^", c) {
				return // no character of a URI
			}
		}
		scheme, rest, _ := strings.Cut(uri, "://")
		for _, secret := range []string{uri + "?" + name + "=s3cret", uri + "?s3cret", scheme + "://user:s3cret@" + rest} {
			if got := HideURISecrets("see " + secret + " now"); strings.Contains(got, "s3cret") || !strings.HasPrefix(got, "see "+scheme+"://") || !strings.HasSuffix(got, " now") {
				t.Fatalf("HideURISecrets(%q) = %q", secret, got)
			}
		}
	})
}
