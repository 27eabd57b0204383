// Runs before the first paint, so that a remembered theme does not flash.
(function () {
  'use strict';
  var root = document.documentElement;
  root.classList.add('js');
  try {
    ['theme', 'density', 'wrap', 'space'].forEach(function (name) {
      var value = localStorage.getItem('gatehouse.' + name);
      if (value) root.setAttribute('data-' + name, value);
    });
  } catch (e) { /* storage may be switched off */ }
})();
