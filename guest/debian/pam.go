package debian

import (
	"slices"
	"strings"
)

// This file has the rules of PAM (pam.d(5)). Those that services share are in files that the others
// include: four on Debian, one elsewhere.

// pamTypes are the types of rules that services share.
var pamTypes = []string{"auth", "account", "password", "session"}

// sharedRules are the shared rules. [default=1] and the like skip the rule that denies.
var sharedRules = map[string]string{
	"auth":     "auth [success=1 default=ignore] pam_unix.so nullok\nauth requisite pam_deny.so\nauth required pam_permit.so\n",
	"account":  "account [success=1 new_authtok_reqd=done default=ignore] pam_unix.so\naccount requisite pam_deny.so\naccount required pam_permit.so\n",
	"password": "password [success=1 default=ignore] pam_unix.so obscure yescrypt\npassword requisite pam_deny.so\npassword required pam_permit.so\n",
	"session":  "session [default=1] pam_permit.so\nsession requisite pam_deny.so\nsession required pam_permit.so\nsession required pam_unix.so\n",
}

// A session of a user who logs in belongs to systemd, where it is.
const ofSystemd = "-session optional pam_systemd.so\n"

// environmentRules set the variables of /etc/environment, and those of the locale.
const environmentRules = "session required pam_env.so readenv=1\nsession required pam_env.so readenv=1 envfile=/etc/default/locale\n"

// services are the rules of services. A line "include TYPE" stands for the shared rules.
var services = map[string]string{
	"su":           "auth sufficient pam_rootok.so\n" + environmentRules + "session optional pam_mail.so nopen\nsession required pam_limits.so\ninclude auth\ninclude account\ninclude session\n",
	"su-l":         "auth include su\naccount include su\npassword include su\nsession optional pam_keyinit.so force revoke\nsession include su\n",
	"runuser":      "auth sufficient pam_rootok.so\nsession optional pam_keyinit.so revoke\nsession required pam_limits.so\nsession required pam_unix.so\n",
	"runuser-l":    "auth include runuser\nsession optional pam_keyinit.so force revoke\n" + ofSystemd + "session include runuser\n",
	"login":        "auth optional pam_faildelay.so delay=3000000\nauth requisite pam_nologin.so\nsession required pam_loginuid.so\n" + environmentRules + "include auth\nsession required pam_limits.so\nsession optional pam_motd.so motd=/run/motd.dynamic\nsession optional pam_motd.so noupdate\nsession optional pam_mail.so standard\nsession optional pam_keyinit.so force revoke\ninclude account\ninclude session\ninclude password\n",
	"sshd":         "include auth\naccount required pam_nologin.so\ninclude account\nsession required pam_loginuid.so\nsession optional pam_keyinit.so force revoke\ninclude session\nsession optional pam_motd.so motd=/run/motd.dynamic\nsession optional pam_motd.so noupdate\nsession optional pam_mail.so standard noenv\nsession required pam_limits.so\n" + environmentRules + "include password\n",
	"sudo":         "session required pam_limits.so\ninclude auth\ninclude account\ninclude noninteractive\n",
	"sudo-i":       "session required pam_limits.so\ninclude auth\ninclude account\ninclude session\n",
	"cron":         "include auth\nsession required pam_loginuid.so\n" + environmentRules + "include account\ninclude noninteractive\nsession required pam_limits.so\n",
	"passwd":       "include password\n",
	"chpasswd":     "include password\n",
	"newusers":     "include password\n",
	"chfn":         "auth sufficient pam_rootok.so\ninclude auth\ninclude account\ninclude session\n",
	"chsh":         "auth required pam_shells.so\nauth sufficient pam_rootok.so\ninclude auth\ninclude account\ninclude session\n",
	"other":        "include auth\ninclude account\ninclude password\ninclude session\n",
	"polkit-1":     "include auth\ninclude account\ninclude password\nsession required pam_env.so readenv=1 user_readenv=0\ninclude noninteractive\n",
	"systemd-user": "include account\nsession optional pam_keyinit.so force revoke\ninclude noninteractive\n" + ofSystemd,
}

func (b *builder) pam() {
	rules := map[string]string{"noninteractive": sharedRules["session"]}
	for _, t := range pamTypes {
		rules[t] = sharedRules[t]
	}
	if b.family == ubuntu {
		rules["session"] += "session optional pam_umask.so\n"
		rules["noninteractive"] += "session optional pam_umask.so\n"
	}
	rules["session"] += ofSystemd
	var expand []string
	if b.isDebian() {
		for t, text := range rules {
			name := "common-" + strings.Replace(t, "noninteractive", "session-noninteractive", 1)
			b.file("etc/pam.d/"+name, text)
			expand = append(expand, "include "+t+"\n", "@include "+name+"\n")
		}
		b.file("etc/pam.conf", "# Rules are in /etc/pam.d; while that is there, this file is not read.\n")
	} else {
		b.file("etc/pam.d/system-auth", rules["auth"]+rules["account"]+rules["password"]+rules["session"])
		for _, t := range pamTypes {
			expand = append(expand, "include "+t+"\n", t+" include system-auth\n")
		}
		expand = append(expand, "include noninteractive\n", "session include system-auth\n")
	}
	for name, text := range services {
		b.file("etc/pam.d/"+name, expandLines(text, expand))
	}
	b.file("etc/security/limits.conf", "# DOMAIN TYPE ITEM VALUE, see limits.conf(5). Files of limits.d come later.\n")
	b.dirs("etc/security/limits.d", "etc/security/namespace.d")
	for _, name := range []string{"access", "faillock", "group", "namespace", "pam_env", "sepermit", "time"} {
		b.file("etc/security/"+name+".conf", "# See "+name+".conf(5).\n")
	}
}

// expandLines replaces whole lines by others, which are given in pairs.
func expandLines(text string, pairs []string) string {
	lines := slices.Collect(strings.Lines(text))
	for i, line := range lines {
		if at := slices.Index(pairs, line); at >= 0 && at%2 == 0 {
			lines[i] = pairs[at+1]
		}
	}
	return strings.Join(lines, "")
}
