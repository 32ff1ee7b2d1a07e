package debian

// This file has what shells read: profile files and the files of a new home.

const (
	pathOfRoot  = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	pathOfUsers = "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games"
)

const profile = `# Login shells read this, then their user's ~/.profile.
if [ "$(id -u)" -eq 0 ]; then
  PATH="` + pathOfRoot + `"
else
  PATH="` + pathOfUsers + `"
fi
export PATH

if [ -n "${PS1-}" ]; then
  if [ -n "${BASH-}" ] && [ "$BASH" != /bin/sh ]; then
    [ ! -r /etc/bash.bashrc ] || . /etc/bash.bashrc
  elif [ "$(id -u)" -eq 0 ]; then
    PS1='# '
  else
    PS1='$ '
  fi
fi

for file in /etc/profile.d/*.sh; do
  [ ! -r "$file" ] || . "$file"
done
unset file
`

const bashrc = `# Interactive shells read this, then their user's ~/.bashrc.
[ -n "${PS1-}" ] || return
shopt -s checkwinsize
PS1='\u@\h:\w\$ '
`

const userBashrc = `# Interactive shells that are no login shells read this.
case $- in
  *i*) ;;
  *) return ;;
esac
HISTCONTROL=ignoreboth
HISTSIZE=1000
HISTFILESIZE=2000
shopt -s histappend checkwinsize
PS1='\u@\h:\w\$ '
alias ls='ls --color=auto'
alias grep='grep --color=auto'
[ ! -f ~/.bash_aliases ] || . ~/.bash_aliases
`

const userProfile = `# Login shells read this, unless bash finds ~/.bash_profile or ~/.bash_login.
if [ -n "$BASH_VERSION" ] && [ -f ~/.bashrc ]; then
  . ~/.bashrc
fi
for dir in ~/bin ~/.local/bin; do
  [ ! -d "$dir" ] || PATH="$dir:$PATH"
done
unset dir
`

const rootProfile = `# Login shells of the superuser read this.
if [ -n "${BASH-}" ] && [ -f ~/.bashrc ]; then
  . ~/.bashrc
fi
mesg n 2>/dev/null || true
`

func (b *builder) shells() {
	b.file("etc/profile", profile)
	b.dirs("etc/profile.d")
	environment := ""
	if b.family == ubuntu {
		environment = `PATH="` + pathOfRoot + `:/usr/games:/usr/local/games:/snap/bin"` + "\n"
	}
	b.file("etc/environment", environment)
	name := "etc/bash.bashrc"
	if !b.isDebian() {
		name = "etc/bashrc"
	}
	b.file(name, bashrc)
	b.file("etc/skel/.bashrc", userBashrc)
	b.file("etc/skel/.profile", userProfile)
	b.file("etc/skel/.bash_logout", "# Bash reads this when a login shell ends.\n[ \"$SHLVL\" != 1 ] || clear 2>/dev/null\n")
	b.file("root/.bashrc", "# Interactive shells of the superuser read this.\n[ -n \"${PS1-}\" ] || return\nPS1='\\u@\\h:\\w\\$ '\n")
	b.file("root/.profile", rootProfile)
}
