package redact

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// What has the looks of a secret. Folders may have spaces in their names, since a
// separator ends each; the last part of a path has none, since a sentence may
// go on behind it.
var (
	sid = regexp.MustCompile(`\bS-1-(?:5-21|5-5|5-80|5-82|12-1|15-2|15-3)(?:-\d+)+`)
	url = regexp.MustCompile(`\b(https?|ftp|smb)://([^\s"'<>*;/]+)([^\s"'<>*;]*)`)
	// An address of a network with a port, as messages of failed connections have it.
	endpoint = regexp.MustCompile(`\b(?:\d{1,3}\.){3}\d{1,3}:\d{1,5}\b|\[[0-9A-Fa-f]*:[0-9A-Fa-f:.%a-z]*\]:\d{1,5}\b`)
	// A drive, a server, a device or a folder of users, folders, a name.
	windowsPath = regexp.MustCompile(`(?:(?:\\\\[?.]\\|\\\?\?\\)?\b[A-Za-z]:[\\/]|\\\\[^\\/\s"<>|?*]+[\\/]|\\(?i:Device|Users|Documents and Settings)\\)` +
		`(?:[^\\/:*?"<>|\r\n]*[\\/])*` + `[^\\/:*?"<>|\s,;')\]]*`)
	unixPath = regexp.MustCompile(`(^|[\s"'=(:;,*\[{|])(/(?:[^/\s:*?"<>|;][^/:*?"<>|;\r\n]*/)+)([^/\s:*?"<>|;,')\]]*)`)
	// userFolder tells a user's name by the folder that it stands in.
	userFolder = regexp.MustCompile(`(?i)(?:^|[\\/])(?:Users|Documents and Settings|home)[\\/]+([^\\/:*?"<>|\r\n;,']+)`)
)

// publicServers are symbol servers that everybody uses.
var publicServers = []string{"msdl.microsoft.com", "symbols.nuget.org", "symbols.mozilla.org", "chromium-browser-symsrv.commondatastorage.googleapis.com"}

// sharedUsers are names of folders of users that belong to nobody.
var sharedUsers = []string{"public", "default", "all users", "default user", "shared"}

// systemFolders hold Windows itself.
var systemFolders = regexp.MustCompile(`(?i)^(?:(?:(?:\\\\\?\\|\\\?\?\\)?[A-Z]:|\\Device\\HarddiskVolume\d+)?[\\/](?:Windows|WINNT)|\\SystemRoot)[\\/](?:System32|SysWOW64|SyChpe32|SysArm32|WinSxS|Microsoft\.NET|assembly)(?:[\\/]|$)`)

// Text replaces paths, servers and security identifiers in a text. It changes
// nothing that it made itself.
func (r *Redactor) Text(s string) string {
	if r == nil || !strings.ContainsAny(s, `\/`) && !strings.Contains(s, "S-1-") {
		return s
	}
	s = sid.ReplaceAllStringFunc(s, func(id string) string { return r.pseudonym("sid", id) })
	s = url.ReplaceAllStringFunc(s, r.url)
	s = windowsPath.ReplaceAllStringFunc(s, r.path)
	return unixPath.ReplaceAllStringFunc(s, func(m string) string {
		at := strings.IndexByte(m, '/')
		return m[:at] + r.path(m[at:])
	})
}

// noteHosts learns the names of servers, which messages tell without what makes them a URL.
func (r *Redactor) noteHosts(s string) {
	for _, m := range url.FindAllStringSubmatch(s, -1) {
		if host := hostOf(m[2]); !public(host) {
			if name, _, _ := strings.Cut(host, ":"); len(name) > 2 {
				r.noteWord("server", name)
			}
		}
	}
}

// hostOf leaves out who logs in.
func hostOf(authority string) string { return authority[strings.LastIndexByte(authority, '@')+1:] }

func public(host string) bool { return slices.Contains(publicServers, strings.ToLower(host)) }

func (r *Redactor) url(s string) string {
	m := url.FindStringSubmatch(s)
	host := hostOf(m[2])
	if public(host) {
		return m[1] + "://" + host + m[3]
	}
	return m[1] + "://" + r.pseudonym("server", strings.ToLower(host)) + "/" + r.leaf("", BaseName(m[3]))
}

// path replaces the folder of a path. Folders of Windows itself stay.
func (r *Redactor) path(s string) string {
	at := strings.LastIndexAny(s, `\/`)
	if at < 0 || systemFolders.MatchString(s) {
		return s
	}
	// Leading separators belong to the folder, those before the name are kept once.
	dir, name := strings.TrimRight(s[:at], `\/`), s[at+1:]
	if r.own[dir] {
		return s
	}
	r.noteUsers(s)
	folder := strings.TrimLeft(dir, `\/`)
	if folder == "" || len(folder) == 2 && folder[1] == ':' { // \name, C:\name
		return s[:at+1] + r.leaf(dir, name)
	}
	return r.pseudonym("dir", strings.ToLower(dir)) + s[at:at+1] + r.leaf(dir, name)
}

// folder replaces a folder; other places, such as "dump memory", stay.
func (r *Redactor) folder(s string) string {
	switch {
	case url.MatchString(s): // with what came of asking it
		return r.sentence(s)
	case r.folders[s] || strings.ContainsAny(s, `\/`):
		r.noteUsers(s)
		return r.pseudonym("dir", strings.ToLower(strings.TrimRight(s, `\/`)))
	}
	return s
}

// leaf is the last part of a path: the name of a user's own folder is no file's.
func (r *Redactor) leaf(dir, name string) string {
	if m := userFolder.FindStringSubmatch(dir + `\` + name); m != nil && m[1] == name {
		if p := r.users[strings.ToLower(name)]; p != "" {
			return p
		}
	}
	return name
}

// noteUsers learns the names of users from a path.
func (r *Redactor) noteUsers(s string) {
	for _, m := range userFolder.FindAllStringSubmatch(s, -1) {
		r.noteWord("user", m[1])
	}
}

// noteWord learns the name of a user or a machine, which sentences may not hold as a
// word, in any case.
func (r *Redactor) noteWord(label, name string) {
	name = strings.ToLower(strings.Trim(name, `\ `))
	if name == "" || r.users[name] != "" || slices.Contains(sharedUsers, name) {
		return
	}
	r.users[name], r.userName = r.pseudonym(label, name), nil
}

// whose lists the variables of an environment that tell a user, machine or domain.
var whose = map[string]string{
	"USERNAME": "user", "COMPUTERNAME": "host", "LOGONSERVER": "host", "CLIENTNAME": "host",
	"USERDOMAIN": "domain", "USERDNSDOMAIN": "domain", "USERDOMAIN_ROAMINGPROFILE": "domain",
}

// noteVariable learns what one variable of an environment tells.
func (r *Redactor) noteVariable(s string) {
	name, value, _ := strings.Cut(s, "=")
	// Two letters alone are too common a word to take out of every sentence.
	if label := whose[strings.ToUpper(name)]; label != "" && len(value) > 2 {
		r.noteWord(label, value)
	}
}

// BaseName is what is left of a file's path by the policy Base.
func BaseName(s string) string { return s[strings.LastIndexAny(s, `\/`)+1:] }

// newFinder looks for the longest secret first.
func newFinder(secrets map[string]string) *strings.Replacer {
	keys := slices.SortedFunc(maps.Keys(secrets), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	pairs := make([]string, 0, 2*len(keys))
	for _, k := range keys {
		pairs = append(pairs, k, secrets[k])
	}
	return strings.NewReplacer(pairs...)
}

// userPattern finds names of users that stand alone.
func userPattern(users map[string]string) *regexp.Regexp {
	names := slices.SortedFunc(maps.Keys(users), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	for i, n := range names {
		names[i] = regexp.QuoteMeta(n)
	}
	return regexp.MustCompile(`(?i)(?:\b|^)(?:` + strings.Join(names, "|") + `)(?:\b|$)`)
}
