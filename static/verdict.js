// The verdict bar of the review page: its forms also work without this. No key decides;
// Approve of what has warnings, and on a phone any Approve, takes a second press on a sheet.
(function () {
  'use strict';
  var page = document.querySelector('.review');
  if (!page) return;
  function all(sel, from) { return Array.from((from || document).querySelectorAll(sel)); }
  function on(type, sel, act) {
    document.addEventListener(type, function (e) {
      var el = e.target.closest && e.target.closest(sel);
      if (el) act(el, e);
    });
  }
  // A text that is typed and not sent stays with the browser, under the revision's digest.
  var key = 'gatehouse.draft.' + page.dataset.digest.slice(0, 16);
  function keep(text) {
    try {
      if (text) localStorage.setItem(key, text);
      else localStorage.removeItem(key);
    } catch (e) { /* storage may be switched off */ }
  }
  function kept() {
    try { return localStorage.getItem(key) || ''; } catch (e) { return ''; }
  }
  function form() { return document.getElementById('verdict'); }
  function sheet() { return document.getElementById('approve-sheet'); }
  function comment() { return document.getElementById('comment'); }
  function phone() { return matchMedia('(max-width: 640px)').matches; }
  function missing(f) { return all('input[name="tick"]:not(:checked)', f); }

  var chosen = null, openedAt = 0;
  function write(kind) {
    var f = form();
    if (!f) return;
    chosen = kind;
    f.classList.add('writing');
    comment().focus();
  }
  function showSheet() {
    var f = form();
    sheet().open = true;
    openedAt = Date.now();
    (missing(f)[0] || f.querySelector('.approve')).focus();
  }
  function closeSheet() {
    if (!form() || !sheet() || !sheet().open) return;
    sheet().open = false;
    form().querySelector('.approve').focus();
  }
  on('click', '#verdict button[name="verdict"]', function (b, e) {
    var f = form(), text = comment();
    if (b.value === 'approve') {
      if (!sheet().open && (missing(f).length || phone())) {
        e.preventDefault();
        showSheet();
      } else if (Date.now() - openedAt < 300) {
        e.preventDefault(); // a double tap is not a second thought
      }
    } else if (!text.value.trim() && ((b.value === 'request_changes' && f.dataset.drafts === '0') || (phone() && !f.classList.contains('writing')))) {
      e.preventDefault();
      write(b.value);
      text.placeholder = b.value === 'reject' ? 'Why? Empty is possible.' : 'Say what to change';
    }
  });
  on('submit', '#verdict', function (f, e) {
    if (f.dataset.sent) { e.preventDefault(); return; }
    f.dataset.sent = '1';
  });
  on('input', '#comment', function (t) { keep(t.value); });
  document.addEventListener('keydown', function (e) {
    if (e.key === 'Enter' && e.target.name === 'tick') e.preventDefault();
    if (e.key === 'Escape') closeSheet();
  });
  document.addEventListener('gh-key', function (e) {
    var f = form(), approve = f && f.querySelector('.approve');
    switch (e.detail) {
    case 'a':
      if (approve && missing(f).length) showSheet();
      else if (approve) approve.focus();
      break;
    case 'r': write('reject'); break;
    case 'e': write('request_changes'); break;
    case 'send':
      var b = f && f.querySelector('button[value="' + (chosen || (f.matches('.answer-form') ? 'answer' : '')) + '"]');
      if (b) f.requestSubmit(b);
      break;
    }
  });
  if (form()) {
    if (!comment().value) comment().value = kept();
    if (comment().value) form().classList.add('writing');
    if (sheet() && !document.querySelector('#review-bar > .form-error')) sheet().open = false;
  } else {
    keep(''); // it was counted, or nobody asks for it: a form that was sent signed out finds its text again
  }
  // The bar lies over the page's foot and grows with what it asks: whatever is scrolled to stops above it.
  var bar = document.getElementById('review-bar');
  if (bar && window.ResizeObserver && document.adoptedStyleSheets) {
    var room = new CSSStyleSheet();
    document.adoptedStyleSheets = [room];
    new ResizeObserver(function () {
      room.replaceSync(':root { --verdict-bar: ' + bar.offsetHeight + 'px; }');
    }).observe(bar);
  }
  // The live bar is another revision's: this page's verdicts are over.
  document.addEventListener('gh-superseded', function (e) {
    var bar = e.target;
    if (bar.hasAttribute('data-stale')) return;
    bar.setAttribute('data-stale', '');
    var p = document.createElement('p'), a = document.createElement('a');
    p.className = 'bar-line';
    p.textContent = 'A newer revision replaced this one.';
    a.className = 'button';
    a.href = location.pathname;
    a.textContent = 'Open it';
    p.appendChild(a);
    bar.appendChild(p);
  });
})();
